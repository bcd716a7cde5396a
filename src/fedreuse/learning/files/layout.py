"""Sources below a path: one file, a folder of splits, one folder per client, or a Python object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import DataError, suggest
from fedreuse.core.registry import load_object
from fedreuse.learning.files.arrays import ArraySource
from fedreuse.learning.files.images import IMAGES, ImageFolder
from fedreuse.learning.files.torch_dataset import TorchSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.learning.files.source import ColumnNames, Source

__all__ = ["CLIENTS", "SPLITS", "Located", "files_below", "locate", "splits_in"]

SPLITS = {
    "train": "train", "training": "train", "validation": "validation", "valid": "validation", "val": "validation",
    "dev": "validation", "test": "test", "testing": "test",
}  # fmt: skip
"""Common names of splits, and the names used here."""
CLIENTS = "clients"
"""Name of the folder with one folder per client."""
_TABLES = (".csv", ".parquet")
_KNOWN = (
    "readable are .npz, .csv and .parquet files, folders of .npy arrays, of tables, of images by class, of train, "
    "validation and test, one folder per client below clients/, folders saved by Hugging Face datasets, and "
    "package.module:Name of a torch Dataset"
)


@dataclass(frozen=True, eq=False)
class Located:
    """A source, with the split and client that its position in the folder implies."""

    source: Source
    split: str | None = None
    client: str | int | None = None


def locate(path: str, names: ColumnNames, shape: tuple[int, ...] | None, options: Mapping[str, Any]) -> list[Located]:
    """Return every source below a path; only names and headers are read.

    Args:
        path: A file, a folder, or `package.module:Name` of a torch Dataset.
        names: Columns of tables and names of arrays.
        shape: Shape that images are resized to; None: that of the first image.
        options: Arguments of the torch Dataset; those under the name of a split are for that split alone.

    Raises:
        DataError: There is nothing at the path, nothing that can be read, or no training split.
    """
    target = Path(path).expanduser()
    if ":" in path and not target.exists():
        return list(_objects(path, options))
    if not target.exists():
        folder = target.parent
        entries = [entry.name for entry in folder.iterdir()] if folder.is_dir() else None
        hint = f"neither does {folder}" if entries is None else suggest(target.name, entries)
        raise DataError(f"task.path: {path} does not exist; {hint}")
    located = list(_Walk(names, shape).below(target, None, None))
    if not located:
        raise DataError(f"task.path: {path} holds no client folders; {_KNOWN}")
    return located


def files_below(path: str) -> list[Path]:
    """Return every file below a path, to detect changes; none for a Python object."""
    target = Path(path).expanduser()
    return [target] if target.is_file() else sorted(file for file in target.rglob("*") if file.is_file())


@dataclass(frozen=True)
class _Walk:
    """The search for sources in files and folders."""

    names: ColumnNames
    shape: tuple[int, ...] | None

    def below(self, path: Path, split: str | None, client: str | int | None) -> Iterator[Located]:
        if path.is_file():
            yield Located(self._file(path), split, client)
        elif (path / "dataset_dict.json").exists() or (path / "state.json").exists():  # of Hugging Face `datasets`
            yield from self._saved(path, split, client)
        elif (splits := splits_in(path)) or (path / CLIENTS).is_dir():
            yield from self._clients(path / CLIENTS)
            for name, inner in splits.items():
                yield from self.below(inner, name, client)
        else:
            yield Located(self._folder(path), split, client)

    def _clients(self, folder: Path) -> Iterator[Located]:
        """Yield the sources of one folder per client; names that are numbers are sorted as numbers."""
        folders = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        are_numbers = all(path.name.isdecimal() for path in folders)
        for path in folders:
            yield from self.below(path, "train", int(path.name) if are_numbers else path.name)

    def _saved(self, path: Path, split: str | None, client: str | int | None) -> Iterator[Located]:
        from fedreuse.learning.files.table import saved_splits

        for name, source in saved_splits(path, self.names, self.shape).items():
            if name and name not in SPLITS:
                raise DataError(f"{path}: '{name}' is not the name of a split; {suggest(name, SPLITS)}")
            yield Located(source, SPLITS[name] if name else split, client)

    def _file(self, path: Path) -> Source:
        if path.suffix == ".npz":
            return ArraySource(path, self.names)
        if path.suffix in _TABLES:
            return self._table([path])
        raise DataError(f"{path}: unknown format '{path.suffix}'; {_KNOWN}")

    def _folder(self, path: Path) -> Source:
        """Return the single source that a folder is."""
        for suffix in _TABLES:
            if tables := sorted(path.glob(f"*{suffix}")):
                return self._table(tables)
        if any(path.glob("*.npy")):
            return ArraySource(path, self.names)
        if any(file.suffix.lower() in IMAGES for file in path.glob("*/*")):
            return ImageFolder(path, self.shape)
        raise DataError(f"{path}: nothing here that can be read; {_KNOWN}")

    def _table(self, files: list[Path]) -> Source:
        from fedreuse.learning.files.table import table_of  # pyarrow: slow to import, and arrays do without

        return table_of(files, self.names, self.shape)


def splits_in(folder: Path) -> dict[str, Path]:
    """Return the files and folders that are named like a split."""
    splits: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        is_source = path.is_dir() or path.suffix in (*_TABLES, ".npz")
        name = SPLITS.get(path.name if path.is_dir() else path.stem)
        if name is None or not is_source:
            continue
        if name in splits:
            raise DataError(f"{folder}: both {splits[name].name} and {path.name} would be the {name} split; keep one")
        splits[name] = path
    if splits and "train" not in splits and not (folder / CLIENTS).is_dir():
        raise DataError(
            f"{folder}: there is {', '.join(splits)} but no train split; add train.npz, .csv, .parquet or train/"
        )
    return splits


def _objects(path: str, options: Mapping[str, Any]) -> Iterator[Located]:
    """Yield a torch dataset per split that has options of its own, or one dataset for all splits."""
    target = load_object(path, "task.path")
    by_split: dict[str | None, Any] = {SPLITS[name]: value for name, value in options.items() if name in SPLITS}
    shared = {name: value for name, value in options.items() if name not in SPLITS}
    for split, own in (by_split or {None: {}}).items():
        try:
            dataset = target(**{**shared, **own})
        except TypeError as error:
            raise DataError(f"task.options: {path} cannot be made with {dict(shared)} and {own}: {error}") from None
        yield Located(TorchSource(path if split is None else f"{path} ({split})", dataset), split)
