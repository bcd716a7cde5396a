"""Partitions: rules that assign training examples to clients, one file each."""

from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, partitions

__all__ = ["ClientIndex", "Examples", "Partition", "partitions"]
