"""Slow, obvious implementations: what the fast kernels must equal, and what their speed is measured against."""
