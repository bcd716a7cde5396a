"""Partitions: how training examples are dealt to clients, one file per rule; each registers itself."""

from importlib import import_module
from pkgutil import iter_modules

from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, partitions

__all__ = ["ClientIndex", "Examples", "Partition", "partitions"]

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
