"""Metrics: what is reported of a model, by states that are added; one file each."""
