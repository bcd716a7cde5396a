"""Stateless representations of a group of tensors."""
