"""Executors: who calls the client function, and where."""

from fedreuse.engine.executors import pool, serial  # noqa: F401  (each registers itself)
