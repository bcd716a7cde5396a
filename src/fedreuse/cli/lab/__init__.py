"""Commands under `fedreuse lab`."""

from fedreuse.cli.lab import anchor, bench, confirm, convergence, devices, export_results, gate, wire
from fedreuse.cli.lab.app import lab_app

__all__ = ["anchor", "bench", "confirm", "convergence", "devices", "export_results", "gate", "lab_app", "wire"]
