"""Measurements of speed and size: ratios taken in one run, with the floor beside them."""
