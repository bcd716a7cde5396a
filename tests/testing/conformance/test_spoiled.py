"""Replies that are no answer: every way is there, well formed, and tried."""

from __future__ import annotations

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.testing.cases import Case
from fedreuse.testing.conformance.sessions import play
from fedreuse.testing.conformance.spoiled import Spoiling, ways_to_spoil
from fedreuse.testing.quadratic import Setting, quadratic_schema


def reply_of(case: Case) -> Envelope:
    """The last reply of a session."""
    return play(case).crossings[-1].envelope


def test_every_way_for_an_update() -> None:
    ways = ways_to_spoil(reply_of(Case("scaffold", {"wire": "derived"}, uplink={"name": "top_k", "ratio": 0.3})))
    groups = ("update", "buffers", "counters")
    assert set(ways) == {
        "of another kind", "with one group more", "with one value more", "without per_step", "with a word for per_step",
        *(f"without {group}" for group in groups), *(f"without a tensor of {group}" for group in groups),
    }  # fmt: skip


def test_every_way_is_well_formed() -> None:
    schema = quadratic_schema()
    for spoiled in ways_to_spoil(reply_of(Case("scaffold"))).values():
        data = spoiled.to_bytes()
        assert Envelope.from_bytes(data, schema).to_bytes() == data


def test_one_reply_of_a_wave_is_honest_and_every_way_is_tried() -> None:
    executor = Spoiling()
    session = play(Case("fedavg"), Setting(executor=executor))
    rows = [row for row in session.ledger.rows if row.direction == "up"]
    assert [sum(row.status == "refused" for row in rows if row.round_number == number) for number in range(1, 8)] == [
        2
    ] * 7
    assert set(executor.ways.values()) == {f"update {way}" for way in ways_to_spoil(reply_of(Case("fedavg")))}
    assert len(executor.faults) == len(executor.ways) == 14


def test_a_wave_of_one_is_spoiled_only_where_the_round_has_an_answer_already() -> None:
    executor = Spoiling()
    play(Case("proxskip", {"p": 0.25, "mode": "partial"}), Setting(executor=executor))
    # three train, two of them spoiled; the one that was absorbed is told to finish, and its answer is spoiled
    assert [fault.exchange for fault in executor.faults] == [1, 1, 2] * 7
