"""Pools of unlabelled items, and labelled data sets for simulations."""
