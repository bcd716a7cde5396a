"""The loop that delivers: ports, executors, client stores, checkpoints; it cannot name a method."""
