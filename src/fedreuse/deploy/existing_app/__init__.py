"""fedreuse inside a Flower app that exists already: a strategy, and a decorator for its train function."""
