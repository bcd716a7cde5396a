"""A persistent (immutable) mapping with integer keys; the cost of a change does not depend on the mapping's size.

It is a tree whose nodes are tuples of 32 entries. A change creates new tuples on the path from the root to the entry
and shares all others, so two versions of a mapping are compared by visiting only the nodes that differ. Keys are
iterated in ascending order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, TypeVar, overload

__all__ = ["ABSENT", "Deferred", "IntMap"]

V = TypeVar("V")
D = TypeVar("D")
_BITS = 5
_WIDTH = 1 << _BITS
ABSENT: Any = type("_Absent", (), {"__repr__": lambda _: "ABSENT"})()
"""Marks an absent entry; None is a valid entry."""


class Deferred(ABC):
    """An entry that is stored elsewhere; looking it up calls `load` and returns the result."""

    nbytes: int
    """Bytes of the entry's arrays once loaded."""

    @abstractmethod
    def load(self) -> Any:
        """Return the entry."""


class IntMap(Mapping[int, V]):
    """An immutable mapping with keys from 0; `with_` and `without` return changed copies."""

    __slots__ = ("_levels", "_root", "_size")

    def __init__(self, entries: Mapping[int, V] | None = None) -> None:
        """Create a mapping with these entries, or an empty one."""
        self._root: Any = ABSENT
        self._levels = 0
        self._size = 0
        if entries:
            self._take(self.with_(entries))

    def with_(self, entries: Mapping[int, V | Deferred]) -> IntMap[V]:
        """Return the mapping with these entries added or replaced."""
        return self._changed(sorted(entries.items(), key=_key)) if entries else self

    def without(self, keys: Iterable[int]) -> IntMap[V]:
        """Return the mapping without these keys; keys that it lacks are ignored."""
        removed = sorted({key for key in keys if key in self})
        return self._changed([(key, ABSENT) for key in removed]) if removed else self

    def __getitem__(self, key: int) -> V:
        """Return the entry of a key, loaded if it is deferred."""
        held = self._find(key)
        if held is ABSENT:
            raise KeyError(key)
        entry: V = held.load() if isinstance(held, Deferred) else held
        return entry

    @overload
    def get(self, key: int, default: None = None) -> V | None: ...

    @overload
    def get(self, key: int, default: V | D) -> V | D: ...

    def get(self, key: int, default: Any = None) -> Any:
        """Return the entry of a key, loaded if it is deferred, or `default`; without an exception on the way."""
        held = self._find(key)
        if held is ABSENT:
            return default
        return held.load() if isinstance(held, Deferred) else held

    def __contains__(self, key: object) -> bool:
        """Return whether the key has an entry; a deferred entry is not loaded."""
        return isinstance(key, int) and self._find(key) is not ABSENT

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._size

    def __iter__(self) -> Iterator[int]:
        """Iterate over the keys in ascending order."""
        return (key for key, _ in self.raw_items())

    def __repr__(self) -> str:
        """Return the number of entries rather than the entries, of which there may be millions."""
        return f"IntMap({self._size} entries)"

    def raw_items(self) -> Iterator[tuple[int, V | Deferred]]:
        """Iterate over all entries without loading deferred ones."""
        return ((key, entry) for key, _, entry in _differences(ABSENT, self._root, self._levels, 0))

    def changes_since(self, before: IntMap[V]) -> Iterator[tuple[int, Any, Any]]:
        """Iterate over (key, entry before, entry now) where the entries are different objects; either may be ABSENT.

        Deferred entries are not loaded.
        """
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
            raise ValueError(f"keys are integers from 0, got {entries[0][0]}")
        levels = self._levels
        while entries[-1][0] >> _BITS * (levels + 1):
            levels += 1
        other: IntMap[V] = IntMap()
        other._levels = levels
        other._root = _put(self._lifted(levels), levels, entries)
        other._size = self._size + sum((new is not ABSENT) - (key in self) for key, new in entries)
        return other

    def _lifted(self, levels: int) -> Any:
        # a higher tree holds the lower one in slot 0, because all its keys start with zero bits
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
    """Iterate over (key, entry before, entry after) where two trees do not share a node."""
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
