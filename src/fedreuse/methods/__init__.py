"""Methods: one file each, two halves that share only messages."""

from fedreuse.methods import (  # noqa: F401  (each registers itself)
    dg_fedreuse,
    fedadagrad,
    fedadam,
    fedavg,
    fedavgm,
    fedprox,
    fedstale,
    fedvarp,
    fedyogi,
    mifa,
    scaffold,
)
