"""Losses: what local training minimises; one file each."""
