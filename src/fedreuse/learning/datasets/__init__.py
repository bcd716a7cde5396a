"""The datasets by name."""
