"""Comparison of runs with the published numbers of the paper."""
