"""fedreuse in an existing Flower app: a strategy, and a decorator for its train function."""
