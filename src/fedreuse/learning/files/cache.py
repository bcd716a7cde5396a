"""Arrays of files: in memory if they are small, else converted once to memory-mapped files on disk."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["IN_MEMORY", "Arrays", "New", "cache_folder", "convert", "in_memory", "read_converted"]

IN_MEMORY = 2**28
"""Largest size of inputs, in bytes, that are read into memory at every start; larger ones are converted and mapped."""
_VERSION = 1
_FACTS = "facts.json"

New = Callable[[str, tuple[int, ...], np.dtype], np.ndarray]
"""Function that makes an array of a name, shape and type, to be filled."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays by name, and facts about them that JSON can hold."""

    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]


def in_memory(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return a new array in memory."""
    del name
    return np.empty(shape, dtype)


def cache_folder(home: Path, settings: object, files: Sequence[Path]) -> Path:
    """Return the folder for these files converted with these settings; a changed file has another folder."""
    stats = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = sha256(json.dumps([_VERSION, repr(settings), stats]).encode()).hexdigest()[:24]
    return home / "converted" / key


def convert(folder: Path, build: Callable[[New], Arrays]) -> Arrays:
    """Let `build` fill mapped arrays in a temporary folder, and rename it when they are complete.

    Raises:
        DataError: The folder cannot be created.
    """
    work = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)

    def new(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.lib.format.open_memmap(work / f"{name}.npy", "w+", dtype, shape)

    try:
        built = build(new)
        for name, array in built.arrays.items():
            if isinstance(array, np.memmap):
                array.flush()
            else:
                np.save(work / f"{name}.npy", array)
        kept = {f"{name}.npy" for name in built.arrays}
        for file in work.iterdir():
            if file.name not in kept:  # an array that was needed only while building
                file.unlink()
        facts = {"facts": dict(built.facts), "arrays": list(built.arrays)}
        (work / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        with suppress(OSError):  # another process may have been first, with the same result
            work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    converted = read_converted(folder)
    if converted is None:
        raise DataError(f"{folder}: the converted arrays cannot be written there; free space, or set FEDREUSE_DATA")
    return converted


def read_converted(folder: Path) -> Arrays | None:
    """Return the converted arrays, memory-mapped; None if there are none yet."""
    if not (folder / _FACTS).exists():
        return None
    content = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in content["arrays"]}
    return Arrays(arrays, content["facts"])
