"""Query strategies, one file each."""
