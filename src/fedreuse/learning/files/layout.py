"""Which sources a path stands for: one file, a folder of splits, one folder per client, or a Python object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import DataError, suggest
from fedreuse.core.registry import load_object
from fedreuse.learning.files.arrays import ArraySource
from fedreuse.learning.files.hugging_face import is_saved_dataset, saved_splits
from fedreuse.learning.files.image_folder import IMAGES, ImageFolder
from fedreuse.learning.files.torch_dataset import TorchSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.learning.files.source import ColumnNames, Source

__all__ = ["CLIENTS", "SPLITS", "Located", "files_below", "locate"]

SPLITS = {
    "train": "train", "training": "train", "validation": "validation", "valid": "validation", "val": "validation",
    "dev": "validation", "test": "test", "testing": "test",
}  # fmt: skip
"""What people call splits, and what we do."""
CLIENTS = "clients"
"""The folder with one folder per client."""
_TABLES = (".csv", ".parquet")
_FILES = (*_TABLES, ".npz")


@dataclass(frozen=True, eq=False)
class Located:
    """A source, and the split and client that its place stands for."""

    source: Source
    split: str | None = None
    client: str | int | None = None


@dataclass(frozen=True)
class Reading:
    """How sources are read, whatever they are."""

    names: ColumnNames
    shape: tuple[int, ...] | None
    options: Mapping[str, Any]


def locate(path: str, names: ColumnNames, shape: tuple[int, ...] | None, options: Mapping[str, Any]) -> list[Located]:
    """Every source below a path; nothing but names and headers is read."""
    reading = Reading(names, shape, options)
    place = Path(path).expanduser()
    if ":" in path and not place.exists():
        return list(_objects(path, reading))
    if not place.exists():
        raise DataError(f"task.path: {path} does not exist; {_nearby(place)}")
    found = list(_below(place, reading, None, None))
    if not found:
        raise DataError(f"task.path: {path} holds no client folders; {_known()}")
    return found


def files_below(path: str) -> list[Path]:
    """Every file that a path stands for, to tell whether anything has changed; none for a Python object."""
    place = Path(path).expanduser()
    return [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())


def _below(place: Path, reading: Reading, split: str | None, client: str | int | None) -> Iterator[Located]:
    if place.is_file():
        yield Located(_file(place, reading), split, client)
        return
    if is_saved_dataset(place):
        for name, source in saved_splits(place, reading.names, reading.shape).items():
            yield Located(source, _split_of(name, place) if name else split, client)
        return
    splits = _split_places(place)
    if splits or (place / CLIENTS).is_dir():
        yield from _clients(place / CLIENTS, reading)
        for name, inner in splits.items():
            yield from _below(inner, reading, name, client)
        return
    yield Located(_folder(place, reading), split, client)


def _clients(folder: Path, reading: Reading) -> Iterator[Located]:
    """One folder per client; names that are numbers are sorted as numbers."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    are_numbers = all(path.name.isdecimal() for path in inside)
    for path in inside:
        yield from _below(path, reading, "train", int(path.name) if are_numbers else path.name)


def _split_places(folder: Path) -> dict[str, Path]:
    """Files and folders that are called like a split."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        is_source = path.is_dir() or path.suffix in _FILES
        name = SPLITS.get(path.name if path.is_dir() else path.stem)
        if name is None or not is_source:
            continue
        if name in found:
            raise DataError(f"{folder}: both {found[name].name} and {path.name} would be the {name} split; keep one")
        found[name] = path
    if found and "train" not in found and not (folder / CLIENTS).is_dir():
        raise DataError(
            f"{folder}: there is {', '.join(found)} but no train split; add train.npz, .csv, .parquet or train/"
        )
    return found


def _file(path: Path, reading: Reading) -> Source:
    if path.suffix == ".npz":
        return ArraySource(path, reading.names)
    if path.suffix in _TABLES:
        return _table([path], reading)
    raise DataError(f"{path}: unknown form '{path.suffix}'; {_known()}")


def _table(files: list[Path], reading: Reading) -> Source:
    from fedreuse.learning.files.table import table_of  # pyarrow: a client without tables need not wait for it

    return table_of(files, reading.names, reading.shape)


def _folder(place: Path, reading: Reading) -> Source:
    """A folder that is one source."""
    for suffix in _TABLES:
        if tables := sorted(place.glob(f"*{suffix}")):
            return _table(tables, reading)
    if any(place.glob("*.npy")):
        return ArraySource(place, reading.names)
    if any(file.suffix.lower() in IMAGES for file in place.glob("*/*")):
        return ImageFolder(place, reading.shape)
    raise DataError(f"{place}: nothing here that can be read; {_known()}")


def _objects(path: str, reading: Reading) -> Iterator[Located]:
    """A torch dataset per split: options of its own under the split's name, or one for all."""
    made = load_object(path, "task.path")
    given: dict[str | None, Any] = {SPLITS[name]: value for name, value in reading.options.items() if name in SPLITS}
    shared = {name: value for name, value in reading.options.items() if name not in SPLITS}
    for split, options in (given or {None: {}}).items():
        try:
            dataset = made(**{**shared, **options})
        except TypeError as error:
            raise DataError(f"task.options: {path} cannot be made with {dict(shared)} and {options}: {error}") from None
        yield Located(TorchSource(path if split is None else f"{path} ({split})", dataset), split)


def _split_of(name: str, place: Path) -> str:
    if name not in SPLITS:
        raise DataError(f"{place}: '{name}' is no split; {suggest(name, SPLITS)}")
    return SPLITS[name]


def _nearby(place: Path) -> str:
    folder = place.parent
    return (
        suggest(place.name, [path.name for path in folder.iterdir()]) if folder.is_dir() else f"neither does {folder}"
    )


def _known() -> str:
    return (
        "known are .npz, .csv and .parquet files, folders of .npy arrays, of tables, of images by class, of train, "
        "validation and test, one folder per client below clients/, folders saved by Hugging Face datasets, and "
        "package.module:Name of a torch Dataset"
    )
