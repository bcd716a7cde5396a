"""Methods: one file each, two halves that share only messages."""
