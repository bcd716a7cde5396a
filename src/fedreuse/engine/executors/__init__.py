"""Executors: in this process, in worker processes, or on Ray actors."""
