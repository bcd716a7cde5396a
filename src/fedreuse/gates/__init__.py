"""Gates: who of the selected clients must be fresh."""

from fedreuse.gates import age_only, always, proxy, quantile, random  # noqa: F401  (each registers itself)
