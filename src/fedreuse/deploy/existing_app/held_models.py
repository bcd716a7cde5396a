"""Models on a node's disk, by digest: a later run that starts from one of them needs no first contact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from fedreuse.core.files import write_whole
from fedreuse.core.tensors import Tensors

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema

__all__ = ["HeldModels", "digest_of"]

_MOST_KEPT = 4


def digest_of(tensors: Tensors) -> int:
    """Return the checksum by which a `delta` link names tensors."""
    return crc32(np.ascontiguousarray(tensors.values).data)


class HeldModels:
    """Weights that a node has received whole, the last four of each layout.

    Args:
        folder: Folder of the files.
        schema: Schema of the model.
    """

    def __init__(self, folder: Path, schema: ModelSchema) -> None:
        """Make no file yet."""
        self._folder, self._schema = folder, schema

    def save(self, weights: Tensors) -> None:
        """Keep weights, and drop the oldest beyond four."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(digest_of(weights))
        if not path.exists():
            write_whole(path, np.ascontiguousarray(weights.values).tobytes(), is_private=True)
        kept = sorted(self._folder.glob(f"{self._prefix}-*.bin"), key=lambda file: file.stat().st_mtime)
        for old in kept[:-_MOST_KEPT]:
            old.unlink(missing_ok=True)

    def load(self, digest: int) -> Tensors | None:
        """Return the weights with a digest; None if they are not here, or damaged."""
        part, path = self._schema.weights, self._path(digest)
        if not path.exists():
            return None
        data = path.read_bytes()
        if len(data) != part.dense_bytes or crc32(data) != digest:
            return None
        return Tensors(part, np.frombuffer(data, part.dtype))

    @property
    def _prefix(self) -> str:
        return self._schema.digest[:16]

    def _path(self, digest: int) -> Path:
        return self._folder / f"{self._prefix}-{digest:08x}.bin"
