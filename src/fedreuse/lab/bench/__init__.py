"""Benchmarks of speed and size: ratios within one run, compared with a bare PyTorch loop."""
