"""Links: one group, one direction, two ends."""

from fedreuse.links import clag, ef21, error_feedback, laq, plain, three_pc  # noqa: F401  (each registers itself)
