"""Losses that local training minimises, one file each."""
