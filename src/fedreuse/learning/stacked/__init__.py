"""Layers of several clients at once, as batched products without autograd and `vmap`."""
