"""Boundaries: what counts as communication, one file each."""
