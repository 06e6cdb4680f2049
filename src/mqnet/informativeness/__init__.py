"""Informativeness scores, one file each: higher = more worth learning."""
