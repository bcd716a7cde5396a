"""Datasets from their published addresses: downloaded by pooch, verified, then moved to where `load` reads them."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError, DataError, shortened
from fedreuse.core.extras import needs_package
from fedreuse.learning.data import datasets, digest_of
from fedreuse.learning.datasets.archives import take_out
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.folder import data_home, find
from fedreuse.learning.datasets.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fedreuse.learning.data import Data

__all__ = ["Checked", "Progress", "available", "check", "fetch", "sources"]

Progress = Callable[[str, int, int | None], None]
"""Callback of a download: name of the file, bytes so far, bytes in all (None: unknown)."""

_TIMEOUT_SECONDS, _RETRIES, _CHUNK_BYTES = 30, 2, 1 << 18
_OWN = ("files", "text")
_WITHOUT_FILES = {
    "digits": "comes with scikit-learn",
    "synthetic": "is generated",
    **dict.fromkeys(_OWN, "is your own data"),
    "at_home": "stays at the nodes of a deployment",
}


@dataclass(frozen=True)
class Checked:
    """Contents of a loaded and verified dataset."""

    name: str
    examples: dict[str, int]
    num_classes: int
    digest: str
    is_pinned: bool
    """True if the digest was compared with the published data's; otherwise counts and classes were."""
    array_digests: tuple[str, ...] = ()
    """Of train inputs, train labels, test inputs, test labels."""


def fetch(name: str, folder: Path | None = None, progress: Progress = lambda *_: None) -> Path:
    """Download a dataset into the folder of all datasets, verify it, and return its folder; a good copy is kept.

    Raises:
        ConfigError: There is no such dataset, or it has no files to fetch.
        DataError: A download failed, a checksum or the arrays are not those of the published data, or another fetch
            of the same dataset is running.
        MissingPackage: pooch is not installed.
    """
    datasets.get(name, "datasets")
    if name not in SOURCES:
        raise ConfigError(f"{name}: nothing to fetch, it {sources(name)[0]}")
    home = data_home(folder)
    with _work_folder(name, home) as work:
        if (there := _verified(name, folder)) is not None:
            return there
        try:
            ready = _download(name, work, progress)
            _load_from(name, ready)
        except (DataError, OSError, ValueError) as error:  # requests raises OSError; pooch ValueError for a checksum
            raise DataError(
                f"{name}: could not be fetched from {SOURCES[name].base}: {shortened(str(error))}; run the command "
                "again later, or get the files by other means and set task.path to their folder"
            ) from None
        _put_in_place(ready, home / name)
    return home / name


def check(name: str, folder: Path | None = None) -> Checked:
    """Load and verify a dataset, and return counts and digests."""
    if name in _OWN:
        raise ConfigError(f"{name}: these are your own data; `fedreuse data show CONFIG` reads and describes them")
    data = datasets.parse(name, "datasets").load(folder)
    is_pinned = name in FACTS and FACTS[name].has_met_published_files
    arrays = (data.train.inputs, data.train.labels, data.test.inputs, data.test.labels)
    digests = tuple(digest_of(array) for array in arrays)
    return Checked(name, _examples(data), data.num_classes, data.digest, is_pinned, digests)


def available(name: str, folder: Path | None = None) -> bool:
    """Return True if a dataset needs no files or has all of them; they are not read."""
    datasets.get(name, "datasets")
    return name not in SOURCES or find(name, folder=folder) is not None


def sources(name: str) -> list[str]:
    """Return the address a dataset comes from, or a phrase where it has no files to fetch."""
    datasets.get(name, "datasets")
    if name not in SOURCES:
        return [_WITHOUT_FILES.get(name, "comes with the code that defines it")]
    return [SOURCES[name].title]


class _Bar:
    """A progress bar as pooch calls it, which reports to a callback."""

    def __init__(self, name: str, progress: Progress) -> None:
        self._name, self._progress = name, progress
        self.total = self._done = 0

    def update(self, count: int) -> None:
        self._done = min(self._done + count, self.total) if self.total else self._done + count
        self._progress(self._name, self._done, self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        """Do nothing: the callback has seen the last byte."""


def _download(name: str, work: Path, progress: Progress) -> Path:
    """Download the files of a dataset into `work` and take what `load` reads into a folder of its own."""
    with needs_package("fetching a dataset"):
        import pooch
    pooch.get_logger().setLevel("ERROR")  # the callback reports instead
    source = SOURCES[name]
    registry = {file: f"md5:{digest}" for file, digest in source.files.items()}
    # files that are whole stay in `work` when a later one fails: the next fetch finds them by their checksums
    remote = pooch.create(work / "files", f"{source.base}/", registry=registry, retry_if_failed=_RETRIES)
    wanted = frozenset(file + packed for form in FACTS[name].forms for file in form.names() for packed in ("", ".gz"))
    ready = work / "ready"
    shutil.rmtree(ready, ignore_errors=True)
    ready.mkdir(parents=True)
    for file in source.files:
        bar = _Bar(file, progress)
        get = pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK_BYTES, timeout=_TIMEOUT_SECONDS)
        remote.fetch(file, downloader=get)
        take_out(work / "files" / file, wanted, ready)
    return ready


def _load_from(name: str, place: Path) -> Data:
    return datasets.parse({"name": name, "path": str(place)}, "datasets").load(None)


def _verified(name: str, folder: Path | None) -> Path | None:
    """Return the folder of a copy that loads, or None."""
    copy = find(name, folder=folder)
    if copy is None:
        return None
    place = next(iter(copy.paths.values())).parent
    try:
        _load_from(name, place)
    except DataError:
        return None
    return place


def _put_in_place(ready: Path, target: Path) -> None:
    """Rename the folder, so that the dataset is there whole or not at all; an older one keeps another name."""
    if target.exists():
        number = 1
        while (aside := target.with_name(f"{target.name}.replaced-{number}")).exists():
            number += 1
        target.rename(aside)
    ready.rename(target)


@contextmanager
def _work_folder(name: str, home: Path) -> Iterator[Path]:
    """Make a folder that `load` never reads, for one fetch at a time."""
    work = home / f".fetch-{name}"
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{name}: another fetch into {home} is running; wait for it to end") from None
        try:
            yield work
        except BaseException:
            shutil.rmtree(work / "ready", ignore_errors=True)
            if not any(file.is_file() for file in (work / "files").glob("*")):
                shutil.rmtree(work)
            raise
        shutil.rmtree(work)


def _examples(data: Data) -> dict[str, int]:
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    return {name: len(split) for name, split in splits.items() if split is not None}
