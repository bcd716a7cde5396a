"""A partition made elsewhere, read from a file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from fedreuse.core.bounded import MAX_LIST_BYTES, read_json
from fedreuse.core.errors import ConfigError, DataError, require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex, starts_of
from fedreuse.learning.partitions.partition import Partition, partitions, require_sizes

__all__ = ["IndexFile"]


@partitions.register("index_file")
@dataclass(frozen=True)
class IndexFile(Partition):
    """A partition made elsewhere, read from a file.

    The file is JSON, one list of example numbers per client ([[0, 5], [1, 2, 3]], alone or under the key
    `clients`), or an npz as ClientIndex.save writes it. Examples that no client has stay unused.

    Args:
        path: The file; its name ends in .json or .npz.
        min_examples: Smallest number of examples of a client, at least 1.

    Raises:
        ConfigError: The file cannot be read, has another number of clients than `task.clients`, an example outside of
            the training split, or one with two owners.

    Example:
        task: {name: digits, clients: 2, partition: {name: index_file, path: parts.json}}

    """

    path: str
    min_examples: int = 1

    chooses_examples = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.path.endswith((".json", ".npz")), "index_file.path must end in .json or .npz", self.path)
        require(self.min_examples >= 1, "index_file.min_examples must be at least 1", self.min_examples)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Read the file and check it against the data."""
        del rng  # nothing is drawn
        where = f"task.partition.path: {self.path}"
        listed = self._read(where)
        if listed.num_clients != num_clients:
            raise ConfigError(
                f"{where} lists {listed.num_clients} clients, but task.clients is {num_clients}; "
                f"set task.clients: {listed.num_clients}, or name the file that fits"
            )
        owners = _owners_of(listed, len(examples), where)
        require_sizes(listed, self.min_examples, where, "correct the file, or lower min_examples")
        return ClientIndex.from_owners(owners, num_clients, listed.redraws)

    def _read(self, where: str) -> ClientIndex:
        path = Path(self.path).expanduser()
        if self.path.endswith(".npz"):
            try:
                return ClientIndex.load(path)
            except DataError as error:
                raise ConfigError(f"task.partition.path: {error}") from None
        try:
            content = read_json(path, MAX_LIST_BYTES)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{where} cannot be read as JSON ({error}); correct the path or the file") from None
        lists = content.get("clients") if isinstance(content, dict) else content
        if not isinstance(lists, list) or not all(isinstance(examples, list) for examples in lists):
            raise ConfigError(f"{where} must hold one list of example numbers per client, [[0, 5], [1, 2, 3]]")
        flat = list(chain.from_iterable(lists))
        for value in flat:
            if type(value) is not int or abs(value) >= 2**63:
                raise ConfigError(f"{where}: {value!r} is not an example number; whole numbers from 0 are")
        sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        return ClientIndex(starts_of(sizes), np.array(flat, dtype=np.int64))


def _owners_of(listed: ClientIndex, num_examples: int, where: str) -> np.ndarray:
    """Return the owner of each example; refuse numbers outside the data and examples with two owners."""
    client_of = listed.owners
    outside = np.flatnonzero((listed.indices < 0) | (listed.indices >= num_examples))
    if len(outside):
        raise ConfigError(
            f"{where}: client {client_of[outside[0]]} has example {listed.indices[outside[0]]}, but "
            f"the training examples are 0 to {num_examples - 1}; correct the file, or choose its dataset"
        )
    owners = np.full(num_examples, -1, dtype=np.int64)
    owners[listed.indices] = client_of
    times = np.bincount(listed.indices, minlength=num_examples)
    if (times > 1).any():
        example = int(np.argmax(times > 1))
        first, second = client_of[listed.indices == example][:2]
        raise ConfigError(
            f"{where}: example {example} belongs to client {first} and again to client {second}; "
            "an example has one owner: correct the file"
        )
    return owners
