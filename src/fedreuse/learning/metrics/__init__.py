"""Metrics of a model, computed from states that add up over batches and clients; one file each."""
