"""Stateless representations of a group of tensors."""

from fedreuse.codecs import dense, nonzero, top_k  # noqa: F401  (each registers itself)
