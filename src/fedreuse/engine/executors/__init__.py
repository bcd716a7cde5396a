"""Executors: who calls the client function, and where."""

from fedreuse.engine.executors import pool, ray, serial  # noqa: F401  (each registers itself)
