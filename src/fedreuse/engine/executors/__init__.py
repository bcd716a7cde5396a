"""Executors: who calls the client function, and where."""

from fedreuse.engine.executors import serial  # noqa: F401  (registers itself)
