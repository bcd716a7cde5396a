"""Methods: one file each, two halves that share only messages."""

from importlib import import_module
from pkgutil import iter_modules

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")  # each registers itself
