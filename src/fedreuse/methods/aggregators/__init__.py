"""Aggregators: how the contributions of a round become one direction; one file each."""
