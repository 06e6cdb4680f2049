"""The loop: ask, tell, learn, again."""
