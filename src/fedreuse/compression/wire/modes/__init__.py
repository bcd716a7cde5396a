"""Modes: every way to write one tensor, one file each. Whoever decodes imports this package and so knows them all."""

from importlib import import_module
from pkgutil import iter_modules

from fedreuse.compression.wire.block import MODES

__all__ = ["MODES"]

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")  # each adds its mode
