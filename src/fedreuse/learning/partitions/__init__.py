"""Partitions: how training examples are dealt to clients, one file per rule."""

from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, partitions

__all__ = ["ClientIndex", "Examples", "Partition", "partitions"]
