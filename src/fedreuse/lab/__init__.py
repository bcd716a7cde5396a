"""Laboratory: plans, audits, benchmarks and comparisons behind published results; the library does not import it."""
