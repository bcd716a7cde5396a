"""Inference over seeds: paired differences, intervals, tests, power, and censored costs to a target.

Everything here takes plain numbers, independent of runs. The arithmetic is SciPy's and statsmodels'.
"""
