"""Arrays of files: in memory if they are small, else converted once to memory-mapped files on disk."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.bounded import map_array, read_bytes
from fedreuse.core.checked import parse_checked, with_check
from fedreuse.core.errors import DataError, RunDirectoryError
from fedreuse.core.files import is_alive, sync_folder, write_whole
from fedreuse.core.names import inside

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "CONVERTED",
    "IN_MEMORY",
    "Arrays",
    "New",
    "cache_folder",
    "clear_converted",
    "convert",
    "in_memory",
    "read_converted",
]

IN_MEMORY = 2**28
"""Largest size of inputs, in bytes, that are read into memory at every start; larger ones are converted and mapped."""
CONVERTED = "converted"
"""Folder of the conversions in the folder of all datasets."""
_VERSION = 2
_FACTS, _UNFINISHED = "facts.json", ".part"
_KEPT_SECONDS = 90 * 86_400.0
"""Conversions that were not used for so long are removed when another is made."""

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
    return home / CONVERTED / key


def convert(folder: Path, build: Callable[[New], Arrays]) -> Arrays:
    """Let `build` fill mapped arrays in a temporary folder, and rename it when they are complete and on disk.

    The data may be private, so only the owner can read them, whatever the mode of the files they come from.

    Raises:
        DataError: The folder cannot be created.
    """
    home = folder.parent
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)
    clear_converted(home, older_than=_KEPT_SECONDS)
    work = folder.with_name(f".{folder.name}.{os.getpid()}{_UNFINISHED}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)

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
        digests = {name: _settle(work / f"{name}.npy") for name in built.arrays}
        facts = with_check({"facts": dict(built.facts), "arrays": digests})
        write_whole(work / _FACTS, json.dumps(facts).encode(), is_private=True)
        if not (folder / _FACTS).exists():
            shutil.rmtree(folder, ignore_errors=True)  # an incomplete one
        with suppress(OSError):  # another process may have been first, with the same result
            work.rename(folder)
            sync_folder(home)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    converted = read_converted(folder)
    if converted is None:
        raise DataError(f"{folder}: the converted arrays cannot be written there; free space, or set FEDREUSE_DATA")
    return converted


def read_converted(folder: Path) -> Arrays | None:
    """Return the converted arrays, memory-mapped; None if there are none yet.

    Arrays that do not have their checksum are removed, so that they are converted again.
    """
    if not (folder / _FACTS).exists():
        return None
    try:
        content = parse_checked(read_bytes(folder / _FACTS))
        paths = {name: inside(folder, f"{name}.npy") for name in content["arrays"]}
        if any(_digest(paths[name]) != digest for name, digest in content["arrays"].items()):
            raise ValueError("an array was changed")
        arrays = {name: map_array(path) for name, path in paths.items()}
        os.utime(folder)  # the time of the last use
        return Arrays(arrays, content["facts"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RunDirectoryError):
        shutil.rmtree(folder, ignore_errors=True)
        return None


def clear_converted(home: Path, older_than: float = 0.0) -> int:
    """Remove conversions that were last used more than some seconds ago, and what killed processes left behind.

    Returns:
        The number of bytes that were freed.
    """
    freed = 0
    for folder in home.iterdir() if home.is_dir() else ():
        process = folder.name.removesuffix(_UNFINISHED).rpartition(".")[2]
        is_unfinished = folder.name.endswith(_UNFINISHED) and process.isdecimal()
        is_in_use = is_alive(int(process)) if is_unfinished else time.time() - folder.stat().st_mtime <= older_than
        if not is_in_use:
            freed += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            shutil.rmtree(folder, ignore_errors=True)
    return freed


def _settle(path: Path) -> str:
    """Make a file private and durable; return its digest."""
    path.chmod(0o600)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return _digest(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
