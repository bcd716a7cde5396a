"""A mapping from whole numbers that is a value: a changed one costs what changed, however much it holds.

It is a tree whose branches are tuples of 32; a change makes new tuples on the way from the root to the entry and shares
all others. So two mappings of one history are compared by walking only where they differ. Keys come in rising order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, TypeVar

__all__ = ["ABSENT", "Deferred", "IntMap"]

V = TypeVar("V")
_BITS = 5
_WIDTH = 1 << _BITS
ABSENT: Any = type("_Absent", (), {"__repr__": lambda _: "ABSENT"})()
"""Stands where there is no entry; None may be one."""


class Deferred(ABC):
    """An entry that lies elsewhere; whoever looks it up gets what `load` brings, and does not know."""

    nbytes: int
    """Bytes of its arrays once loaded."""

    @abstractmethod
    def load(self) -> Any:
        """The entry."""


class IntMap(Mapping[int, V]):
    """Never changes; `with_` and `without` give another. Keys are 0 or above."""

    __slots__ = ("_levels", "_root", "_size")

    def __init__(self, entries: Mapping[int, V] | None = None) -> None:
        """Empty, or with some entries."""
        self._root: Any = ABSENT
        self._levels = 0
        self._size = 0
        if entries:
            self._take(self.with_(entries))

    def with_(self, entries: Mapping[int, V | Deferred]) -> IntMap[V]:
        """The mapping with these entries added or replaced."""
        return self._changed(sorted(entries.items(), key=_key)) if entries else self

    def without(self, keys: Iterable[int]) -> IntMap[V]:
        """The mapping without these keys, as far as it has them."""
        gone = sorted({key for key in keys if key in self})
        return self._changed([(key, ABSENT) for key in gone]) if gone else self

    def __getitem__(self, key: int) -> V:
        """The entry of a key."""
        found = self._find(key)
        if found is ABSENT:
            raise KeyError(key)
        entry: V = found.load() if isinstance(found, Deferred) else found
        return entry

    def __contains__(self, key: object) -> bool:
        """Whether there is an entry; nothing is loaded."""
        return isinstance(key, int) and self._find(key) is not ABSENT

    def __len__(self) -> int:
        """Number of entries."""
        return self._size

    def __iter__(self) -> Iterator[int]:
        """The keys, rising."""
        return (key for key, _ in self.raw_items())

    def __repr__(self) -> str:
        """How many entries, not which: there may be millions."""
        return f"IntMap({self._size} entries)"

    def raw_items(self) -> Iterator[tuple[int, V | Deferred]]:
        """Every entry as it is held, deferred ones not loaded."""
        return ((key, entry) for key, _, entry in _differences(ABSENT, self._root, self._levels, 0))

    def changes_since(self, before: IntMap[V]) -> Iterator[tuple[int, Any, Any]]:
        """Where the two hold other objects: key, entry before, entry now, as held; either may be ABSENT."""
        levels = max(self._levels, before._levels)
        return _differences(before._lifted(levels), self._lifted(levels), levels, 0)

    def _find(self, key: int) -> Any:
        if key < 0 or key >> _BITS * (self._levels + 1):
            return ABSENT
        node = self._root
        for level in range(self._levels, -1, -1):
            if node is ABSENT:
                return ABSENT
            node = node[key >> _BITS * level & _WIDTH - 1]
        return node

    def _changed(self, entries: list[tuple[int, Any]]) -> IntMap[V]:
        if entries[0][0] < 0:
            raise ValueError(f"keys are whole numbers from 0, got {entries[0][0]}")
        levels = self._levels
        while entries[-1][0] >> _BITS * (levels + 1):
            levels += 1
        other: IntMap[V] = IntMap()
        other._levels = levels
        other._root = _put(self._lifted(levels), levels, entries)
        other._size = self._size + sum((new is not ABSENT) - (key in self) for key, new in entries)
        return other

    def _lifted(self, levels: int) -> Any:
        root = self._root
        for _ in range(levels - self._levels):
            root = root if root is ABSENT else (root, *(ABSENT,) * (_WIDTH - 1))
        return root

    def _take(self, other: IntMap[V]) -> None:
        self._root, self._levels, self._size = other._root, other._levels, other._size


def _put(node: Any, level: int, entries: list[tuple[int, Any]]) -> Any:
    slots = [ABSENT] * _WIDTH if node is ABSENT else list(node)
    if level == 0:
        for key, entry in entries:
            slots[key & _WIDTH - 1] = entry
    else:
        shift = _BITS * level
        for slot, group in groupby(entries, key=lambda entry: entry[0] >> shift & _WIDTH - 1):
            slots[slot] = _put(slots[slot], level - 1, list(group))
    return ABSENT if all(slot is ABSENT for slot in slots) else tuple(slots)


def _differences(old: Any, new: Any, level: int, base: int) -> Iterator[tuple[int, Any, Any]]:
    """Key, entry before, entry after, wherever two trees do not share."""
    if old is new:
        return
    empty = (ABSENT,) * _WIDTH
    for slot, (before, after) in enumerate(
        zip(*(empty if side is ABSENT else side for side in (old, new)), strict=True)
    ):
        if before is after:
            continue
        if level == 0:
            yield base + slot, before, after
        else:
            yield from _differences(before, after, level - 1, base + (slot << _BITS * level))


def _key(entry: tuple[int, Any]) -> int:
    return entry[0]
