"""Extraction of named files from a zip or tar archive."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

from fedreuse.core.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["take_out"]


def take_out(path: Path, wanted: frozenset[str], ready: Path) -> None:
    """Extract the wanted files of an archive into `ready`.

    Only the last part of a member's path is used, so that no file is written outside of `ready`.

    Raises:
        DataError: The file is not a readable archive.
    """
    if path.name in wanted:
        shutil.copyfile(path, ready / path.name)
        return
    try:
        if zipfile.is_zipfile(path):
            _take_from_zip(path, wanted, ready)
        else:
            _take_from_tar(path, wanted, ready)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path.name}: not a readable archive ({error})") from None


def _take_from_zip(path: Path, wanted: frozenset[str], ready: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if (name := PurePosixPath(member.filename).name) in wanted and not member.is_dir():
                with archive.open(member) as content:
                    _write(content, ready / name)


def _take_from_tar(path: Path, wanted: frozenset[str], ready: Path) -> None:
    with tarfile.open(path) as archive:
        for member in archive:
            if (name := PurePosixPath(member.name).name) in wanted and member.isfile():
                content = archive.extractfile(member)
                assert content is not None  # a regular file has content
                _write(content, ready / name)


def _write(content: IO[bytes], target: Path) -> None:
    with target.open("wb") as file:
        shutil.copyfileobj(content, file)
