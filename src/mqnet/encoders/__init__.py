"""Frozen encoders: images and texts to vectors. One file each; `mqnet embed` runs them over a pool."""
