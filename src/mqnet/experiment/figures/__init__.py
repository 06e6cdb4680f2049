"""Figures of a grid in a paper's style: one file per kind, one file for how strategies look."""
