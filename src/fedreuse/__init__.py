"""fedreuse: federated learning with cached-update reuse, its closest relatives, and honest byte accounting.

from fedreuse import load, run
directory = run(load("config.yaml"))
directory.summary, directory.metric("validation_score"), directory.traffic()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.runs.config import RunConfig, load
    from fedreuse.runs.directory import RunDirectory
    from fedreuse.runs.launch import run

__version__ = "0.1.0"
__all__ = ["RunConfig", "RunDirectory", "__version__", "load", "run"]

_HOMES = {"RunConfig": "runs.config", "load": "runs.config", "RunDirectory": "runs.directory", "run": "runs.launch"}


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: the core stays light, and works without torch."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"fedreuse.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fedreuse' has no attribute '{name}'")
