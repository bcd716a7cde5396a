"""The folder of all datasets, the files of one dataset in it, and the remedy when they are absent."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.facts import FACTS, Files
from fedreuse.learning.datasets.sources import SOURCES
from fedreuse.learning.datasets.verification import data_of, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fedreuse.learning.data import Data, Split

__all__ = ["Found", "data_home", "find", "load_files", "way_out"]


@dataclass(frozen=True)
class Found:
    """Files of a dataset on disk: path by canonical name, and the published form they make up."""

    form: Files
    paths: dict[str, Path]


def data_home(folder: Path | None = None) -> Path:
    """Return the folder of all datasets: the given one, else $FEDREUSE_DATA, else the user's cache."""
    if folder is not None:
        return folder.expanduser()
    return Path(os.environ.get("FEDREUSE_DATA") or "~/.cache/fedreuse").expanduser()


def way_out(name: str) -> str:
    """Return a sentence that says how to get an intact copy of a dataset."""
    return (
        f"get it with `fedreuse data fetch {name}`, or point FEDREUSE_DATA at the folder that holds {name}/, "
        "or task.path at the folder that holds the files"
    )


def find(name: str, path: str | None = None, folder: Path | None = None) -> Found | None:
    """Return the first complete set of files of a dataset, or None."""
    for candidate in _candidates(name, path, folder):
        for form in FACTS[name].forms:
            paths = {file: actual for file in form.names() if (actual := _on_disk(candidate, file)) is not None}
            if len(paths) == len(form.names()):
                return Found(form, paths)
    return None


def load_files(name: str, path: str | None, folder: Path | None, read: Callable[[Found], dict[str, Split]]) -> Data:
    """Find, read and verify a dataset in files.

    Raises:
        DataError: The files are absent, damaged or of another dataset; the message names the folder and the remedy.
    """
    found = find(name, path, folder)
    if found is None:
        raise DataError(f"{name}: {_describe_absence(name, path, folder)}; {way_out(name)}")
    location = next(iter(found.paths.values())).parent
    try:
        data = data_of(name, read(found))
        verify(data, FACTS[name], found.form)
    except DataError as error:
        raise DataError(f"{name}: in {location}: {error}; {way_out(name)}") from None
    except OSError as error:
        raise DataError(f"{name}: in {location}: cannot be read ({error}); {way_out(name)}") from None
    return data


def _candidates(name: str, path: str | None, folder: Path | None) -> Iterator[Path]:
    """Yield the folders to search, the most likely first."""
    home = data_home(folder) if path is None else Path(path).expanduser()
    own = home / name if path is None else home
    yield own
    yield own / name
    for layout in FACTS[name].layouts:
        yield own / layout
        yield home / layout  # as torchvision or a plain `tar x` leaves them
    below = chain(own.glob("*/"), own.glob("*/*/"))
    # hidden folders hold incomplete downloads
    yield from sorted(
        candidate for candidate in below if not any(part[:1] == "." for part in candidate.relative_to(own).parts)
    )


def _on_disk(candidate: Path, file: str) -> Path | None:
    """Return the file, compressed or not, also with the dot that some unpackers put before idx; None if absent."""
    for name in (file, f"{file}.gz", file.replace("-idx", ".idx"), f"{file.replace('-idx', '.idx')}.gz"):
        if (candidate / name).is_file():
            return candidate / name
    return None


def _describe_absence(name: str, path: str | None, folder: Path | None) -> str:
    """Name the files that are missing from the folder that has most of them."""
    best: tuple[int, Path, list[str]] | None = None
    pickled = FACTS[name].pickled
    for candidate in _candidates(name, path, folder):
        if pickled and all((candidate / file).is_file() for file in pickled):
            return (
                f"{candidate} holds pickles, which are never read; the binary version is {SOURCES[name].addresses[0]}"
            )
        for form in FACTS[name].forms:
            missing = [file for file in form.names() if _on_disk(candidate, file) is None]
            present = len(form.names()) - len(missing)
            if best is None or present > best[0]:
                best = (present, candidate, missing)
    assert best is not None  # every dataset in files has a folder and a form
    return f"not found: {', '.join(best[2])} missing from {best[1]}"
