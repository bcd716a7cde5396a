"""What it means that two sessions are equal: any difference is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedreuse.engine.state.records import ClientRecord
from fedreuse.testing.cases import Case
from fedreuse.testing.conformance.sessions import (
    ROUNDS,
    STRICT,
    UNRELIABLE,
    assert_equal,
    assert_same_memories,
    check_events,
    drawn,
    is_same,
    play,
    six_clients,
    stored,
)

FEEDBACK = Case("fedavg", uplink={"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}})


@pytest.mark.slow
def test_a_session_equals_itself_and_no_other() -> None:
    assert_equal(play(FEEDBACK), play(FEEDBACK))
    with pytest.raises(AssertionError, match="the models differ after round 1"):
        assert_equal(play(FEEDBACK), play(Case("fedavg")))
    with pytest.raises(AssertionError):
        assert_equal(play(FEEDBACK), play(FEEDBACK, num_rounds=ROUNDS - 1))


def test_a_row_more_and_an_event_more_are_seen() -> None:
    session, other = play(FEEDBACK), play(FEEDBACK)
    other.ledger.rows.append(other.ledger.rows[0])
    with pytest.raises(AssertionError, match="the ledgers differ"):
        assert_equal(session, other)
    session.ledger.events.append(session.ledger.events[-1])
    with pytest.raises(AssertionError, match="round 7: events of"):
        check_events(session)


@pytest.mark.parametrize(("end", "told"), [("server", "the server remembers"), ("client", "builds on a lost reply")])
def test_memories_are_compared_at_both_ends(end: str, told: str) -> None:
    session, other = play(FEEDBACK), play(FEEDBACK)
    assert_same_memories(session, other)
    client, contact = next(iter(other.record.contacts.items()))
    if end == "server":
        changed = other.record.contacts.with_({client: replace(contact, uplink={"update": drawn(1)})})
        other.record = replace(other.record, contacts=changed)
    else:
        memory = other.store.load(client).memories[contact.ack]
        other.store.save(client, ClientRecord({contact.ack: replace(memory, uplink={"update": drawn(1)})}))
    with pytest.raises(AssertionError, match=told):
        assert_same_memories(session, other)


def test_draws_are_other_ones_for_each_number() -> None:
    assert stored(drawn(1)) == stored(drawn(1)) != stored(drawn(2))


def test_the_unreliable_plan_loses_and_delays() -> None:
    fates = {UNRELIABLE.fate(7, number, 1, client) for number in range(1, ROUNDS + 1) for client in range(6)}
    assert fates == {"answers", "lost", "late"}
    assert not is_same(six_clients().initial, play(FEEDBACK, STRICT).model)
