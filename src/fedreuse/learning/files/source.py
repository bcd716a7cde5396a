"""What every form of file gives: facts of all examples at once, and their inputs chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fedreuse.learning.files.coded import Coded

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

__all__ = ["CHUNK", "ColumnNames", "Facts", "Source"]

CHUNK = 8192
"""Examples that are in memory at once while a source is read."""


@dataclass(frozen=True)
class ColumnNames:
    """Which column (or array) holds what; None: there is none, or for inputs: all the others."""

    inputs: tuple[str, ...] | None = None
    label: str = "label"
    client: str | None = None
    time: str | None = None
    split: str | None = None

    def others(self) -> tuple[str, ...]:
        """Every named column but the inputs."""
        named = (self.label, self.client, self.time, self.split)
        return tuple(name for name in named if name is not None)


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of every example but its inputs."""

    labels: Coded
    clients: Coded | None = None
    times: np.ndarray | None = None
    splits: Coded | None = None


class Source(Protocol):
    """One file or folder of examples."""

    @property
    def where(self) -> str:
        """The path, for messages."""
        ...

    def facts(self) -> Facts:
        """Label, client, time and split of every example."""
        ...

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and type of one input."""
        ...

    def chunks(self) -> Iterator[np.ndarray]:
        """The inputs in order, at most CHUNK at once; NaN where a number is missing."""
        ...

    def input_name(self, place: int) -> str:
        """What the file calls the input at this place of a flattened example, for messages."""
        ...
