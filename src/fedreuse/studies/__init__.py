"""Studies: several runs that belong together, known in full before the first one starts."""
