"""Benchmarks against other libraries, one per file; `python -m benchmarks` runs all of them."""
