"""Links: one group, one direction, two ends."""
