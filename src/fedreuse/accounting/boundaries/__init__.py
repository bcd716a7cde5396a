"""Boundaries, one file each: definitions of the bytes that count as communication."""
