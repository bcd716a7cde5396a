"""Runs: configuration, schedule, directory, and the straight line through them."""
