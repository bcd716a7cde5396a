"""Archives of stored results: a folder of runs as one compressed file, read like the folder.

An archive is a tar file compressed with Zstandard (`tar --zstd -xf NAME.tar.zst` unpacks it) that holds one folder. A
path may lead into it: `results/lean.tar.zst/RUN` is the run directory RUN of that folder. Functions that read stored
results pass every path through `opened`, and keep the path they were given for messages.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import file_digest
from io import BytesIO, RawIOBase
from pathlib import Path
from threading import Lock
from typing import IO, Any

import zstandard

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.core.names import relative_name

__all__ = ["MAX_BYTES", "MAX_MEMBERS", "SUFFIX", "folders_in", "is_archive", "name_of", "opened", "pack"]

SUFFIX = ".tar.zst"
"""Ending of an archive's file name."""
MAX_MEMBERS = 100_000
"""Most files and folders that an archive may hold."""
MAX_BYTES = 4 << 30
"""Most bytes that an archive may unpack to."""

_LEVEL, _WINDOW_LOG = 19, 27
"""The window is the largest that `zstd -d` accepts without an option; runs of a study repeat whole files."""
_PIECE = 1 << 20
_FILES, _FOLDERS = (tarfile.REGTYPE, tarfile.AREGTYPE), (tarfile.DIRTYPE,)

_lock = Lock()
_unpacked: dict[tuple[int, ...], Path] = {}
"""Folders of this process by device, inode, size and time of change of their archives."""
_home: Path | None = None


def is_archive(path: Path) -> bool:
    """Return whether a path names an archive."""
    return path.name.endswith(SUFFIX) and path.is_file()


def name_of(path: Path) -> str:
    """Return the name of a study's folder, or of the archive it is packed in without the ending."""
    return path.resolve().name.removesuffix(SUFFIX)


def opened(path: str | Path) -> Path:
    """Return where the files of a path can be read: the path itself, or its unpacked copy if it leads into an archive.

    An archive is unpacked once per process, into a temporary folder that only this user can read and that is removed at
    the end of the process. An archive that changed meanwhile is unpacked again.

    Args:
        path: Any path; an archive, or a path that continues below one.

    Raises:
        RunDirectoryError: The archive is damaged, cut, too large, or holds names or members that are not allowed.

    Example:
        >>> from fedreuse.store.archive import opened
        >>> opened("runs/mine").as_posix()
        'runs/mine'
    """
    given = Path(path)
    if SUFFIX not in str(given):
        return given
    for place in (given, *given.parents):
        if is_archive(place):
            return _folder_of(place) / given.relative_to(place)
    return given


def folders_in(path: Path) -> list[Path]:
    """Return the folders and archives directly in a folder or archive, sorted, as paths below the one given."""
    try:
        inside = list(opened(path).iterdir())
    except (NotADirectoryError, FileNotFoundError, PermissionError):
        return []
    return sorted(path / inner.name for inner in inside if inner.is_dir() or is_archive(inner))


def pack(folder: Path, out: Path, name: str) -> int:
    """Write a folder as an archive and return its size in bytes.

    The bytes depend on names and contents alone (and on the version of Zstandard): members are sorted, and have no
    owner and no time.

    Args:
        folder: The folder; its regular files are packed.
        out: The archive to write, whole or not at all.
        name: Name of the folder inside the archive.

    Raises:
        RunDirectoryError: Something in the folder is neither a regular file nor a folder, or its name is not allowed.
    """
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(folder.rglob("*"), key=lambda file: file.relative_to(folder).as_posix()):
            if file.is_symlink() or not (file.is_file() or file.is_dir()):
                raise RunDirectoryError(f"{file} is neither a file nor a folder, and is not packed; remove it")
            if file.is_file():
                member = tarfile.TarInfo(str(relative_name(f"{name}/{file.relative_to(folder).as_posix()}")))
                member.size, member.mode = file.stat().st_size, 0o644
                with file.open("rb") as data:
                    tar.addfile(member, data)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, window_log=_WINDOW_LOG, enable_ldm=True, write_checksum=True, write_content_size=True
    )
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(content.getvalue())
    write_whole(out, packed)
    return len(packed)


def _folder_of(archive: Path) -> Path:
    """Return the unpacked folder of an archive; it is unpacked at the first call."""
    with _lock, _reading(archive), archive.open("rb") as file:
        status = os.fstat(file.fileno())
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in _unpacked or not _unpacked[key].is_dir():
            target = _temporary() / file_digest(file, "sha256").hexdigest()
            file.seek(0)
            _unpacked[key] = _unpack(file, target)
        return _unpacked[key]


@contextmanager
def _reading(archive: Path) -> Iterator[None]:
    """Raise what goes wrong with an archive as an error that names it."""
    try:
        yield
    except (zstandard.ZstdError, tarfile.TarError, EOFError, ValueError, RunDirectoryError) as error:
        raise RunDirectoryError(
            f"{archive} is not an archive of results, or is damaged ({error}); restore it from a copy"
        ) from None
    except OSError as error:
        raise RunDirectoryError(f"{archive} could not be unpacked ({error}); free space in TMPDIR") from None


def _temporary() -> Path:
    """Return the folder of this process for unpacked archives, readable by this user alone."""
    global _home
    if _home is None or not _home.is_dir():
        _home = Path(tempfile.mkdtemp(prefix="fedreuse-archives-"))
        atexit.register(partial(_remove, _home, os.getpid()))
    return _home


def _remove(home: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked process that ends must not take the folder from its parent
        shutil.rmtree(home, ignore_errors=True)


def _unpack(file: IO[bytes], target: Path) -> Path:
    """Unpack into `target`, which appears whole or not at all; return the one folder in it."""
    if not target.is_dir():
        partial_copy = Path(tempfile.mkdtemp(dir=target.parent))
        try:
            _write_members(file, partial_copy)
            partial_copy.rename(target)
        except BaseException:
            shutil.rmtree(partial_copy, ignore_errors=True)
            raise
    (folder,) = target.iterdir()
    return folder


def _write_members(file: IO[bytes], target: Path) -> None:
    changed = os.fstat(file.fileno()).st_mtime_ns
    size = zstandard.frame_content_size(file.read(18))  # the longest header; -1 if the frame does not say
    file.seek(0)
    with zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG).stream_reader(
        file, read_across_frames=True
    ) as decompressed:
        stream = _Bounded(decompressed)
        top: set[str] = set()
        with tarfile.open(fileobj=stream, mode="r|", bufsize=_PIECE) as tar:
            for number, member in enumerate(tar, start=1):
                if number > MAX_MEMBERS:
                    raise ValueError(f"it holds more than {MAX_MEMBERS:,} members")
                name = relative_name(member.name)
                top.add(name.parts[0])
                _write_member(tar, member, target / name, changed)
        while stream.read(_PIECE):
            pass  # to the end, so that the checksum is compared
    if len(top) != 1 or not (target / next(iter(top))).is_dir():
        raise ValueError(f"it must hold one folder, and holds {', '.join(sorted(top)) or 'nothing'}")
    if stream.num_bytes < size:
        raise EOFError(f"it ends after {stream.num_bytes:,} of {size:,} bytes")


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, changed: int) -> None:
    """Write one file or folder; files get the archive's time of change."""
    if member.type in _FOLDERS:
        path.mkdir(parents=True, exist_ok=True)
        return
    data = tar.extractfile(member) if member.type in _FILES else None
    if data is None:
        raise ValueError(f"{member.name} is neither a file nor a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as target:
            shutil.copyfileobj(data, target, _PIECE)
        os.utime(path, ns=(changed, changed))
    except FileExistsError:
        raise ValueError(f"{member.name} is in it twice") from None


class _Bounded(RawIOBase):
    """A stream that refuses to give more than `MAX_BYTES`: a small file may decompress to any size."""

    def __init__(self, stream: zstandard.ZstdDecompressionReader) -> None:
        self._stream, self.num_bytes = stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self.num_bytes += len(data)
        if self.num_bytes > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES:,} bytes")
        buffer[: len(data)] = data
        return len(data)
