"""Links: one group, one direction, two ends."""

from fedreuse.links import error_feedback, plain  # noqa: F401  (each registers itself)
