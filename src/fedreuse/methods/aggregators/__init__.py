"""Aggregators: rules that turn the contributions of a round into one direction, one file each."""
