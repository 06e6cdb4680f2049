"""Purity scores, one file each: higher = more surely one of the known classes."""
