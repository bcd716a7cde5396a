"""Stateless representations of a group of tensors."""

from fedreuse.codecs import dense, ecuq, narrow, natural, nonzero, packed, qsgd, rand_k, ternary, top_k  # noqa: F401  (each registers itself)
