"""Communication-efficient federated learning: cached-update reuse, related methods, and byte accounting.

from fedreuse import load, run
directory = run(load("config.yaml"))
directory.summary, directory.metric("validation_score"), directory.traffic()

`__init__.pyi` lists the public names in groups. Each is imported when it is first used; the core needs no torch.
"""

from typing import Any

import lazy_loader

from fedreuse.core.extras import needs_package

__version__ = "0.1.0"
_import, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use; an error about a missing optional package names the extra."""
    with needs_package(f"fedreuse.{name}"):
        return _import(name)
