"""Numerical kernels: pure functions, tensors in, tensors out. Import the module you need; this file imports nothing."""
