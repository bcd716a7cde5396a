"""Gates: rules for which selected clients train and which are reused."""
