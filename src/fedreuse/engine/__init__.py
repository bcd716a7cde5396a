"""Engine of a run: round loop, ports, executors, client stores and checkpoints; independent of any method."""
