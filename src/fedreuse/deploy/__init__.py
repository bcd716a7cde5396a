"""Deployment on Flower: the methods of a simulation on real nodes.

For an existing Flower app: `FedReuseStrategy` in its server app, `fedreuse_train` on its train function; `ResidentApp`
keeps its client app in memory between messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.deploy.existing_app.decorator import fedreuse_train
    from fedreuse.deploy.existing_app.strategy import FedReuseStrategy
    from fedreuse.deploy.resident.forwarding import ResidentApp

__all__ = ["FedReuseStrategy", "ResidentApp", "fedreuse_train"]

_MODULES = {
    "FedReuseStrategy": "existing_app.strategy",
    "ResidentApp": "resident.forwarding",
    "fedreuse_train": "existing_app.decorator",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: Flower starts a client process per message, which should not import the server."""
    from importlib import import_module

    from fedreuse.core.extras import needs_package

    if name in _MODULES:
        with needs_package(f"fedreuse.deploy.{name}"):
            return getattr(import_module(f"fedreuse.deploy.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'fedreuse.deploy' has no attribute '{name}'")
