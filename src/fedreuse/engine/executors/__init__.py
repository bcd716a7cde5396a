"""Executors: who calls the client function, and where."""
