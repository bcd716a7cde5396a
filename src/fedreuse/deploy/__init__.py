"""The same methods on a real federation: Flower carries the envelopes."""
