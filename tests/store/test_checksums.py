"""Sums of digests: one entry at a time or all at once, in whatever order."""

from __future__ import annotations

import pytest

from fedreuse.store.checksums import Checksums, digest_of_entry, sum_of

ONE, TWO, THREE = (digest_of_entry("blobs", "clients", key, b"%d" % key) for key in (1, 2, 3))


def test_a_sum_that_grew_is_the_sum_of_what_is_there() -> None:
    sums = Checksums().changed("blobs", None, ONE).changed("blobs", None, TWO)
    assert sums.sums["blobs"] == sum_of([TWO, ONE])
    assert sums.changed("blobs", ONE, THREE).sums["blobs"] == sum_of([THREE, TWO])
    assert sums.changed("blobs", ONE, None).changed("blobs", TWO, None).sums["blobs"] == 0


def test_where_an_entry_lies_counts() -> None:
    same = b"data"
    places = [("blobs", "a", 1), ("blobs", "a", 2), ("blobs", "b", 1), ("rows", "a", 1), ("rows", "a1", 1)]
    assert len({digest_of_entry(*place, same) for place in places}) == len(places)


def test_they_are_read_as_written_and_a_changed_round_is_noticed() -> None:
    sums = Checksums(7, "origin", {"blobs": sum_of([ONE]), "rows of metrics": 0})
    assert Checksums.from_text(sums.to_text()) == sums
    with pytest.raises(ValueError, match="its checksum does not fit"):
        Checksums.from_text(sums.to_text().replace('"round": 7', '"round": 6'))
