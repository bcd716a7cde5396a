"""Runs: from a configuration to a run directory, with checkpoints, scores, listeners and predictions."""
