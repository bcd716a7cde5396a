"""What waits while a group holds a part of the schema: tensors, or rows of one, that are absent stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.clag import Clag
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.estimates import follow, followed, part_of, present, with_part
from fedreuse.compression.links.laq import Laq
from fedreuse.compression.links.three_pc import ThreePc
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import WireError
from fedreuse.core.method import Link
from fedreuse.core.schema import Schema
from fedreuse.core.tensors import Tensors, drop_rows, is_equal, pick, to_dense, zeros
from fedreuse.testing.conformance import check_link
from tests.compression.links.vectors import PAIR, Rounded, context, pair

LINKS: list[Link] = [
    ErrorFeedback(TopK(0.3)),
    Ef21(TopK(0.3)),
    Clag(1.0, TopK(0.3)),
    Clag(5.0, TopK(0.3), max_lag=None),
    Laq(3),
    *(ThreePc(variant, TopK(0.3), TopK(0.5), 2.0, 0.4) for variant in ("v2", "v3", "v4", "v5")),  # type: ignore[arg-type]
]
HELD = pair(range(10))


@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_conformance(link: Link) -> None:
    check_link(link)


# by hand


def test_part_of() -> None:
    # a = ((0, 1), (2, 3), (4, 5)), b = (6, 7, 8, 9)
    assert part_of(HELD, PAIR) is HELD
    assert part_of(HELD, PAIR.subset(["b"])).values.tolist() == [6, 7, 8, 9]
    rows = drop_rows(HELD, {"a": [1], "b": [0, 3]}).schema
    assert part_of(HELD, rows).values.tolist() == [0, 1, 4, 5, 7, 8]
    assert part_of(None, rows).values.tolist() == [0] * 6
    assert part_of(HELD, Schema()).values.tolist() == []


def test_with_part() -> None:
    other = pair(range(100, 110))
    assert with_part(HELD, other, PAIR).values.tolist() == other.values.tolist()
    assert with_part(HELD, pick(other, ["b"]), PAIR).values.tolist() == [0, 1, 2, 3, 4, 5, 106, 107, 108, 109]
    rows = drop_rows(pick(other, ["a"]), {"a": [1]})
    assert with_part(HELD, rows, PAIR).values.tolist() == [100, 101, 2, 3, 104, 105, 6, 7, 8, 9]
    assert with_part(None, rows, PAIR).values.tolist() == [100, 101, 0, 0, 104, 105, 0, 0, 0, 0]
    assert HELD.values.tolist() == list(range(10))


def test_follow_adds_what_came_and_silence_leaves() -> None:
    parcel = pack_tensors(pick(pair([1.0] * 10), ["b"]), PAIR)
    arrived, held = follow(parcel, HELD, PAIR)
    assert arrived.values.tolist() == [7, 8, 9, 10]
    assert held.values.tolist() == [0, 1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert is_equal(followed(parcel, held, PAIR), arrived)
    assert present(parcel, PAIR) == PAIR.subset(["b"])
    assert follow(None, HELD, PAIR) == (HELD, HELD)
    with pytest.raises(WireError, match="no estimate yet"):
        follow(None, None, PAIR)


# a residual waits


def test_the_residual_of_an_absent_tensor_waits() -> None:
    link = ErrorFeedback(TopK(0.25))
    # a: k = 1 of 6, b: k = 1 of 4
    _, state = link.send(pair([9, 1, 2, 0, 0, 0, 8, 3, 0, 0]), None, context(PAIR))
    assert state.values.tolist() == [0, 1, 2, 0, 0, 0, 0, 3, 0, 0]
    # b alone: (0, 3, 5, 0) is wanted, 5 is sent, 3 stays; a's residual is untouched
    parcel, state = link.send(pick(pair([0] * 8 + [5, 0]), ["b"]), state, context(PAIR))
    assert to_dense(parcel.decode(PAIR)).values.tolist() == [0, 0, 5, 0]
    assert state.values.tolist() == [0, 1, 2, 0, 0, 0, 0, 3, 0, 0]
    # everything again: (0, 1, 2, 0, 0, 0) and (0, 3, 0, 0) leave 1
    parcel, state = link.send(zeros(PAIR), state, context(PAIR))
    assert to_dense(parcel.decode(PAIR)).values.tolist() == [0, 0, 2, 0, 0, 0, 0, 3, 0, 0]
    assert state.values.tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_the_residual_of_an_absent_row_waits() -> None:
    link = ErrorFeedback(TopK(0.25))
    _, state = link.send(pair([9, 1, 2, 0, 0, 0, 0, 0, 0, 0]), None, context(PAIR))
    # row 1 of a, which holds the 2, is left out: of (0, 1) and (7, 0) the 7 is sent
    parcel, state = link.send(drop_rows(pair([0, 0, 5, 5, 7, 0, 0, 0, 0, 0]), {"a": [1]}), state, context(PAIR))
    assert to_dense(parcel.decode(PAIR)).values.tolist() == [0, 0, 0, 0, 7, 0, 0, 0, 0, 0]
    assert state.values.tolist() == [0, 1, 2, 0, 0, 0, 0, 0, 0, 0]


def test_a_fading_residual_fades_only_where_something_is_sent() -> None:
    link = ErrorFeedback(TopK(0.25), decay=0.5)
    _, state = link.send(pair([9, 4, 0, 0, 0, 0, 8, 4, 0, 0]), None, context(PAIR))
    _, state = link.send(pick(pair([0] * 8 + [5, 0]), ["b"]), state, context(PAIR))
    assert state.values.tolist() == [0, 4, 0, 0, 0, 0, 0, 2, 0, 0]


def test_a_part_first_then_another_part() -> None:
    link = ErrorFeedback(Rounded())
    _, state = link.send(pick(pair([0.25] * 10), ["a"]), None, context(PAIR))
    assert state.values.tolist() == [0.25] * 6 + [0] * 4
    _, state = link.send(pick(pair([0.125] * 10), ["b"]), state, context(PAIR))
    assert state.values.tolist() == [0.25] * 6 + [0.125] * 4


# and so do estimates, at both ends alike


def parts(rng: np.random.Generator) -> Tensors:
    """Random numbers: everything, one tensor, or some rows."""
    whole = pair(rng.normal(size=10))
    choice = rng.integers(4)
    if choice == 0:
        return pick(whole, [["a", "b"][rng.integers(2)]])
    if choice == 1:
        return drop_rows(whole, {"a": [int(rng.integers(3))]})
    return whole


@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_both_ends_agree_whatever_part_is_sent(link: Link) -> None:
    rng = np.random.default_rng(5)
    sender = receiver = None
    for number in range(60):
        update = parts(rng)
        here = context(PAIR, number, movement=float(rng.uniform(0, 2)))
        parcel, sender = link.send(update, sender, here)
        data = Envelope("update", 1, 1, parcels={"update": parcel}).to_bytes()
        arrived, receiver = link.receive(_through(data), receiver, here)
        assert is_equal(arrived, link.delivered(parcel, sender, here))
        if isinstance(link, ErrorFeedback):
            continue
        estimate = sender if isinstance(link, Ef21) else sender.estimate
        assert is_equal(receiver, estimate), "the two ends hold other estimates"


def _through(data: bytes) -> Parcel | None:
    """A parcel as it comes out of bytes."""
    from fedreuse.core.schema import ModelSchema

    return Envelope.from_bytes(data, ModelSchema(PAIR)).parcels["update"]


@pytest.mark.parametrize("link", [Ef21(TopK(0.3)), Clag(1.0, TopK(0.3)), Laq(3), ThreePc()], ids=repr)
def test_the_estimate_of_an_absent_tensor_waits(link: Link) -> None:
    rng = np.random.default_rng(6)
    _, state = link.send(pair(rng.normal(size=10)), None, context(PAIR))
    before = state if isinstance(link, Ef21) else state.estimate
    _, state = link.send(pick(pair(rng.normal(size=10)), ["b"]), state, context(PAIR))
    after = state if isinstance(link, Ef21) else state.estimate
    assert np.array_equal(after["a"], before["a"])
    assert not np.array_equal(after["b"], before["b"])


@pytest.mark.parametrize("link", [Clag(1e9, TopK(0.3), max_lag=None), Laq(3, max_lag=None)], ids=repr)
def test_silence_speaks_for_the_whole_group_only(link: Link) -> None:
    rng = np.random.default_rng(7)
    far = {"movement": 1e9}
    first, second = pair(rng.normal(size=10)), pair(rng.normal(size=10))
    parcel, state = link.send(first, None, context(PAIR, **far))
    assert parcel is not None
    assert link.send(second, state, context(PAIR, **far))[0] is None
    parcel, state = link.send(pick(second, ["a"]), state, context(PAIR, **far))
    assert parcel is not None, "a part of the group is always sent"
    parcel, state = link.send(first, state, context(PAIR, **far))
    assert parcel is not None, "the last parcel did not speak of everything"
    assert link.send(second, state, context(PAIR, **far))[0] is None
