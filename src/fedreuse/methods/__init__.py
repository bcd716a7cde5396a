"""Methods: one file each, two halves that share only messages."""

from fedreuse.methods import dg_fedreuse, fedavg, fedprox  # noqa: F401  (each registers itself)
