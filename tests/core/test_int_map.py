"""The persistent mapping: equal to a dictionary, never changed, and differences cost what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.core.int_map import ABSENT, Deferred, IntMap

KEYS = st.one_of(st.integers(0, 70), st.integers(0, 40_000), st.integers(0, 2**40))
STEPS = st.lists(st.tuples(st.dictionaries(KEYS, st.integers(), max_size=8), st.lists(KEYS, max_size=8)), max_size=12)


class Elsewhere(Deferred):
    """Counts how often it is fetched."""

    def __init__(self, entry: object) -> None:
        self.entry, self.nbytes, self.times = entry, 8, 0

    def load(self) -> Any:
        self.times += 1
        return self.entry


@pytest.mark.slow
@given(STEPS)
def test_it_is_a_dictionary_with_rising_keys(steps: list[tuple[dict[int, int], list[int]]]) -> None:
    known: dict[int, int] = {}
    mapping: IntMap[int] = IntMap()
    for added, gone in steps:
        before, held = dict(known), mapping
        mapping = mapping.with_(added).without(gone)
        known |= added
        known = {key: entry for key, entry in known.items() if key not in gone}
        assert (list(mapping.items()), len(mapping)) == (sorted(known.items()), len(known))
        assert dict(held) == before, "a value was changed"
        assert all((key in mapping) == (key in known) for key in [*added, *gone])
    assert mapping == known


@pytest.mark.slow
@given(STEPS, STEPS)
def test_changes_are_what_turns_one_into_the_other(first: Any, second: Any) -> None:
    before: IntMap[int] = IntMap()
    for added, gone in first:
        before = before.with_(added).without(gone)
    after = before
    for added, gone in second:
        after = after.with_(added).without(gone)
    turned = dict(before)
    for key, old, new in after.changes_since(before):
        assert turned.pop(key, ABSENT) is old
        if new is not ABSENT:
            turned[key] = new
    assert turned == dict(after)


def test_what_is_shared_is_not_a_change() -> None:
    whole = IntMap({key: str(key) for key in range(0, 100_000, 7)})
    new = "new"
    changed = whole.with_({7: new, 50_002: new}).without([14, 15])
    assert list(changed.changes_since(whole)) == [(7, "7", new), (14, "14", ABSENT), (50_002, ABSENT, new)]
    assert list(whole.changes_since(whole)) == []


def test_growing_beyond_the_root_keeps_what_is_below() -> None:
    # 31 fits one tuple of 32, 32 needs a second level, 32 * 32 a third
    small = IntMap({31: "a"})
    grown = small.with_({32: "b"}).with_({1024: "c"})
    assert dict(grown) == {31: "a", 32: "b", 1024: "c"}
    assert [key for key, _, _ in grown.changes_since(small)] == [32, 1024]
    assert list(small.changes_since(grown)) == [(32, "b", ABSENT), (1024, "c", ABSENT)]


def test_nothing_changed_is_the_same_object() -> None:
    mapping = IntMap({3: "a"})
    assert mapping.with_({}) is mapping
    assert mapping.without([4, 5]) is mapping


def test_it_is_a_mapping_that_cannot_be_written() -> None:
    mapping = IntMap({3: None})
    assert isinstance(mapping, Mapping)
    assert (mapping[3], mapping.get(4, "none"), 3 in mapping, "3" in mapping, -1 in mapping) == (
        None, "none", True, False, False,
    )  # fmt: skip
    with pytest.raises(KeyError):
        mapping[2**70]
    with pytest.raises(TypeError):
        mapping[3] = "b"  # type: ignore[index]  # that is the point
    with pytest.raises(ValueError, match="integers from 0, got -2"):
        mapping.with_({-2: "a", 5: "b"})
    assert repr(mapping) == "IntMap(1 entries)"


def test_a_deferred_entry_is_loaded_when_it_is_looked_up_and_not_before() -> None:
    away = Elsewhere("here")
    mapping: IntMap[str] = IntMap({1: "a"}).with_({2: away})
    assert (2 in mapping, len(mapping), list(mapping), list(mapping.raw_items())) == (
        True, 2, [1, 2], [(1, "a"), (2, away)],
    )  # fmt: skip
    assert away.times == 0
    assert (mapping[2], dict(mapping)) == ("here", {1: "a", 2: "here"})
    assert away.times == 2
    assert list(mapping.changes_since(IntMap({1: "a"}))) == [(2, ABSENT, away)]
