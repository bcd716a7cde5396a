"""Modes, one file each: the representations of one tensor. Importing this package registers all of them."""

from importlib import import_module
from pkgutil import iter_modules

from fedreuse.compression.wire.block import MODES

__all__ = ["MODES"]

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")  # each module registers its mode
