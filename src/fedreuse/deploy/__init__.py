"""The same methods on a real federation: Flower carries the envelopes.

For an app that exists: `FedReuseStrategy` in its server app, `fedreuse_train` on its train function; `ResidentApp`
keeps its client app in memory between messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.deploy.existing_app.decorator import fedreuse_train
    from fedreuse.deploy.existing_app.strategy import FedReuseStrategy
    from fedreuse.deploy.resident.forwarding import ResidentApp

__all__ = ["FedReuseStrategy", "ResidentApp", "fedreuse_train"]

_HOMES = {
    "FedReuseStrategy": "existing_app.strategy",
    "ResidentApp": "resident.forwarding",
    "fedreuse_train": "existing_app.decorator",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: a client needs no server, and starts anew for every message."""
    from importlib import import_module

    from fedreuse.core.extras import needs_package

    if name in _HOMES:
        with needs_package(f"fedreuse.deploy.{name}"):
            return getattr(import_module(f"fedreuse.deploy.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fedreuse.deploy' has no attribute '{name}'")
