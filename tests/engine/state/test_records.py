"""Records: the commit rule, written down as what each end remembers."""

from __future__ import annotations

import pytest

from fedreuse.engine.state.records import ClientMemory, ClientRecord, Contact, Kept, MemoryLost

FIRST = ClientMemory("at first contact")


def test_first_contact_knows_nothing_older() -> None:
    record = ClientRecord({3: ClientMemory("old life")})
    assert record.resolve(0, FIRST) is FIRST


def test_the_ack_chooses_among_what_was_proposed() -> None:
    record = ClientRecord().propose(ClientMemory("a"), 4, 0).propose(ClientMemory("b"), 7, 0)
    assert record.resolve(4, FIRST).state == "a"  # 7 was never absorbed
    assert record.resolve(7, FIRST).state == "b"
    with pytest.raises(MemoryLost, match=r"exchange 5 is not among \[4, 7\]"):
        record.resolve(5, FIRST)


def test_what_is_older_than_the_checkpoint_is_forgotten() -> None:
    record = ClientRecord({1: ClientMemory("a"), 4: ClientMemory("b"), 6: ClientMemory("c")})
    assert sorted(record.propose(ClientMemory("d"), 9, durable=4).memories) == [4, 6, 9]


def test_a_repeated_exchange_replaces_what_it_proposed() -> None:
    # the server died after exchange 5 and comes back from the checkpoint of 4
    record = ClientRecord({4: ClientMemory("a"), 5: ClientMemory("first try")}).propose(ClientMemory("second"), 5, 4)
    assert {number: memory.state for number, memory in record.memories.items()} == {4: "a", 5: "second"}


def test_at_the_end_of_a_round_only_what_counts_stays() -> None:
    record = ClientRecord({4: ClientMemory("a", kept=Kept(2, {})), 5: ClientMemory("b")})
    assert list(record.committed(4).memories) == [4]
    assert record.committed(4).memories[4].kept is None
    assert not record.committed(3).memories
    assert len(record.memories) == 2  # a record is a value


def test_durable_is_the_last_absorbed_exchange_inside_the_checkpoint() -> None:
    assert Contact(ack=7, durable=3).durable_at(9) == 7
    assert Contact(ack=7, durable=3).durable_at(7) == 7
    assert Contact(ack=7, durable=3).durable_at(6) == 3
