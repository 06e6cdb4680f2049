"""Simulated experiments: a grid of campaigns, their results, tables, figures and report."""
