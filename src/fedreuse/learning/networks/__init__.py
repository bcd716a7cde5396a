"""Networks: torch modules by name, built for an input shape and a number of classes."""
