"""Learning: datasets, partitions, networks, local training and evaluation; torch lives here only."""
