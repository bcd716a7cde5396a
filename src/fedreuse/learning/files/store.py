"""Where the arrays of files live: in memory if they are small, else converted once to mapped files on disk."""

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

__all__ = ["IN_MEMORY", "Arrays", "New", "convert", "in_memory", "place_for", "read_stored"]

IN_MEMORY = 2**28
"""Inputs of at most so many bytes are read into memory at every start; larger ones are converted once and mapped."""
_FORM = 1
_FACTS = "facts.json"

New = Callable[[str, tuple[int, ...], np.dtype], np.ndarray]
"""Makes an array of a name, shape and type, to be filled."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays by name, and what is known beside them."""

    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]


def in_memory(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array in memory."""
    del name
    return np.empty(shape, dtype)


def place_for(home: Path, settings: object, files: Sequence[Path]) -> Path:
    """The folder of the converted form of these files read with these settings; a changed file has another one."""
    stats = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = sha256(json.dumps([_FORM, repr(settings), stats]).encode()).hexdigest()[:24]
    return home / "converted" / key


def convert(place: Path, build: Callable[[New], Arrays]) -> Arrays:
    """Let `build` fill mapped arrays beside the place, and move them there when they are whole."""
    work = place.with_name(f".{place.name}.{os.getpid()}.part")
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
            if file.name not in kept:
                file.unlink()
        facts = {"facts": dict(built.facts), "arrays": list(built.arrays)}
        (work / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        with suppress(OSError):  # another process may have been first, with the same result
            work.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    stored = read_stored(place)
    if stored is None:
        raise DataError(f"{place}: the converted arrays cannot be put there; make room, or set FEDREUSE_DATA elsewhere")
    return stored


def read_stored(place: Path) -> Arrays | None:
    """What was converted before, mapped; None if nothing was."""
    if not (place / _FACTS).exists():
        return None
    told = json.loads((place / _FACTS).read_text(encoding="utf-8"))
    arrays = {name: np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in told["arrays"]}
    return Arrays(arrays, told["facts"])
