"""State of a run between rounds: records, client stores, checkpoints."""
