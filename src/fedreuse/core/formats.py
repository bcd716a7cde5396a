"""Versions of all formats that are stored or sent."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.core.errors import FedreuseError, RunDirectoryError

__all__ = ["CHANNEL", "CLIENT_STORE", "FORMATS", "FRAME", "JOURNAL", "RUN_DIRECTORY", "WIRE", "Format"]


@dataclass(frozen=True)
class Format:
    """A format and the one version of it that this program writes and reads.

    Args:
        name: Name of the format in messages.
        version: Number that is stored or sent with the content.

    Raises:
        FedreuseError: By `check`, for any other version.

    Example:
        >>> from fedreuse.core.formats import Format
        >>> str(Format("letter", 3))
        'letter 3'
    """

    name: str
    version: int

    def __str__(self) -> str:
        """Return name and version."""
        return f"{self.name} {self.version}"

    def check(self, version: object, where: str, error: type[FedreuseError] = RunDirectoryError) -> None:
        """Refuse every version but this one, naming both.

        Args:
            version: The version that was found; None if there is no number.
            where: The file or message, for the error.
            error: Type of the error.
        """
        if version != self.version:
            raise error(
                f"{where} is written as {self.name} version {version}, but this program reads version {self.version}; "
                "use the version of fedreuse that wrote it"
            )


WIRE = Format("message", 1)
FRAME = Format("frame", 2)
JOURNAL = Format("journal", 2)
RUN_DIRECTORY = Format("run directory", 2)
CLIENT_STORE = Format("client store", 1)
CHANNEL = Format("channel", 1)
FORMATS = (WIRE, FRAME, JOURNAL, RUN_DIRECTORY, CLIENT_STORE, CHANNEL)
"""All formats, in the order of `fedreuse --version`."""
