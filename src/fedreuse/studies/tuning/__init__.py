"""Tuning: settings chosen on validation data by a rule that stands in the file before the first trial."""
