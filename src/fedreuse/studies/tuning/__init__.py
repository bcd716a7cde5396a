"""Tuning: search for settings on validation data, with a selection rule that is fixed before the first trial."""
