"""Inference over seeds: paired differences, their intervals and tests, and costs that some runs never finish paying.

Everything here takes plain numbers and knows nothing of runs. The arithmetic is SciPy's and statsmodels'.
"""
