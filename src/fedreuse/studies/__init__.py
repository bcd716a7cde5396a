"""Studies: sets of runs that are listed in full before the first one starts, and tuning."""
