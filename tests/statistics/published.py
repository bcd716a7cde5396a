"""Data sets of the literature whose results are in print."""

SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
"""Student (1908), additional hours of sleep, drug 2 - drug 1; R's `sleep`: t = 4.0621, p = 0.002833."""

MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
"""Darwin's crossed - self-fertilised maize in eighths of an inch; Fisher (1935) flips all 32,768 signs."""

SIX_MP = ([6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35],
          [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0])  # fmt: skip
"""Freireich et al. (1963), weeks of remission with 6-mercaptopurine, and whether it ended."""

PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
"""The same trial, placebo: every remission ended."""
