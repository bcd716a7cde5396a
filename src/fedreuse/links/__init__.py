"""Links: one group, one direction, two ends."""

from fedreuse.links import clag, delta, ef21, error_feedback, laq, lbgm, packed, plain, three_pc  # noqa: F401  (each registers itself)
