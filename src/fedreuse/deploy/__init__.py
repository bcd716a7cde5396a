"""Deployment on Flower: the methods of a simulation on real nodes.

For an existing Flower app: `Lean` or `Compressed` around its strategy and `compression_mod` in its client app.
`FedReuseStrategy` replaces the strategy by a method of this package, for which `fedreuse_train` gives access to the
network and the loss; `ResidentApp` keeps a client app in memory between messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.deploy.existing_app.compressed import Compressed, Lean
    from fedreuse.deploy.existing_app.decorator import fedreuse_train
    from fedreuse.deploy.existing_app.mod import compression_mod
    from fedreuse.deploy.existing_app.strategy import FedReuseStrategy
    from fedreuse.deploy.resident.forwarding import ResidentApp

__all__ = ["Compressed", "FedReuseStrategy", "Lean", "ResidentApp", "compression_mod", "fedreuse_train"]

_MODULES = {
    "Compressed": "existing_app.compressed",
    "FedReuseStrategy": "existing_app.strategy",
    "Lean": "existing_app.compressed",
    "ResidentApp": "resident.forwarding",
    "compression_mod": "existing_app.mod",
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
