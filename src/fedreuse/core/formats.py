"""Versions of all that leaves a process or outlives it, and which of them this program reads: one place for all."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.core.errors import FedreuseError, RunDirectoryError

__all__ = ["CLIENT_STORE", "FORMATS", "FRAME", "JOURNAL", "RUN_DIRECTORY", "WIRE", "Format"]


@dataclass(frozen=True)
class Format:
    """A format and its versions.

    Args:
        name: What is written so.
        version: What this program writes.
        reads: What it reads.

    Raises:
        FedreuseError: By `check`, if a version cannot be read.

    Example:
        >>> from fedreuse.core.formats import Format
        >>> str(Format("letter", 3, (2, 3)))
        'letter 3 (reads 2, 3)'
    """

    name: str
    version: int
    reads: tuple[int, ...]

    def __str__(self) -> str:
        """For people."""
        return f"{self.name} {self.version} (reads {', '.join(map(str, self.reads))})"

    def check(self, version: object, where: str, error: type[FedreuseError] = RunDirectoryError) -> None:
        """Refuse what this program cannot read, naming both versions."""
        if version not in self.reads:
            raise error(
                f"{where} is written as {self.name} version {version}, and this program reads "
                f"{', '.join(map(str, self.reads))}; use the version of fedreuse that wrote it, or a newer one"
            )


WIRE = Format("message", 1, (1,))
FRAME = Format("frame", 1, (1,))
JOURNAL = Format("journal", 2, (1, 2))
RUN_DIRECTORY = Format("run directory", 2, (1, 2))
CLIENT_STORE = Format("client store", 1, (1,))
FORMATS = (WIRE, FRAME, JOURNAL, RUN_DIRECTORY, CLIENT_STORE)
"""What was written before these numbers were has version 1."""
