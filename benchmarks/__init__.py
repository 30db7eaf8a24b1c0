"""Paired timings: each program through minijax, JAX, NumPy and, for some, hand-written Numba."""
