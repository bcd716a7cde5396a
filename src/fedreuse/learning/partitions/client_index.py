"""The examples of every client, as two flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.bounded import read_arrays
from fedreuse.core.errors import DataError
from fedreuse.core.files import write_whole
from fedreuse.learning.data import digest_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ClientIndex", "starts_of"]


@dataclass(frozen=True, eq=False)
class ClientIndex:
    """The examples of every client: client i has `indices[offsets[i]:offsets[i + 1]]`; the arrays are read-only.

    Args:
        offsets: Start of each client's part of `indices`, and the end of the last one; from 0, not decreasing.
        indices: Positions of examples in the training split.
        redraws: Number of times the partition was drawn again, for the record.

    Raises:
        ValueError: Offsets do not rise from 0 to the number of indices, or an array is not a list of whole numbers.

    Example:
        >>> index = ClientIndex.from_owners(np.array([1, 0, 1]), 2)
        >>> index.of(1).tolist()
        [0, 2]
    """

    offsets: np.ndarray
    indices: np.ndarray
    redraws: int = 0

    def __post_init__(self) -> None:
        """Check that offsets rise from zero to the number of indices."""
        for name in ("offsets", "indices"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise ValueError(f"{name} must be a list of whole numbers, got {array.dtype} of shape {array.shape}")
            view = np.ascontiguousarray(array, dtype=np.int64).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)
        cuts = self.offsets
        if not len(cuts) or cuts[0] != 0 or cuts[-1] != len(self.indices) or (np.diff(cuts) < 0).any():
            raise ValueError(f"offsets must rise from 0 to the number of indices, {len(self.indices)}")

    @classmethod
    def from_owners(cls, owners: np.ndarray, num_clients: int, redraws: int = 0) -> ClientIndex:
        """Group examples by the client that owns each (-1: none), ascending within a client."""
        num_unowned = int(np.count_nonzero(owners < 0))
        grouped = np.argsort(owners, kind="stable")[num_unowned:]
        sizes = np.bincount(owners[grouped], minlength=num_clients)
        return cls(starts_of(sizes), grouped, redraws)

    @property
    def num_clients(self) -> int:
        """Number of clients, including those without examples."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of examples of each client."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        """The client of each entry of `indices`."""
        return np.repeat(np.arange(self.num_clients), self.sizes)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of both arrays."""
        return digest_of(self.offsets, self.indices)

    def of(self, client: int) -> np.ndarray:
        """Return the examples of one client, as a view."""
        if not 0 <= client < self.num_clients:
            raise IndexError(f"client {client} of {self.num_clients}")
        view: np.ndarray = self.indices[self.offsets[client] : self.offsets[client + 1]]
        return view

    def save(self, path: Path) -> None:
        """Write an npz file, atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = BytesIO()
        np.savez(content, offsets=self.offsets, indices=self.indices, redraws=np.int64(self.redraws))
        write_whole(path, content.getbuffer())

    @classmethod
    def load(cls, path: Path) -> ClientIndex:
        """Read a file of `save`; `redraws` may be absent in a file of another origin.

        Raises:
            DataError: The file is absent, damaged, or has other arrays.
        """
        try:
            arrays = read_arrays(path, ["offsets", "indices"], optional=["redraws"])
            return cls(arrays["offsets"], arrays["indices"], int(arrays.get("redraws", 0)))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"{path}: not a client index ({error}); it needs the arrays offsets and indices, "
                "as ClientIndex.save writes them"
            ) from None


def starts_of(sizes: np.ndarray) -> np.ndarray:
    """Return the start of each consecutive group of the given sizes, and the end of the last one."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
