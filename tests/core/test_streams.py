"""Many streams at once: every bit that of the single streams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.randomness import stream
from fedreuse.core.streams import first_numbers, streams


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, 2**63), st.text(max_size=12), st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 40))))
def test_they_are_the_streams_bit_for_bit(seed: int, purpose: str, asked: list[tuple[int, int]]) -> None:
    clients, counts = [client for client, _ in asked], np.array([count for _, count in asked], np.int64)
    wanted = [stream(seed, purpose, 0, client).random(count) for client, count in asked]
    found = first_numbers(seed, purpose, clients, counts)
    assert found.tobytes() == np.concatenate([np.empty(0), *wanted]).tobytes()


@pytest.mark.slow
def test_ten_thousand_clients() -> None:
    # enough of them to meet every carry and every rotation
    clients = range(10_000)
    found = first_numbers(101, "validation", clients, np.full(10_000, 2))
    wanted = [stream(101, "validation", 0, client).random(2) for client in clients]
    assert np.array_equal(found, np.concatenate(wanted))


def test_generators_of_many_clients_are_those_of_single_streams() -> None:
    clients = [0, 7, 10**6]
    found = [(rng.permutation(20).tolist(), rng.random()) for rng in streams(101, "batches", 3, clients)]
    single = [stream(101, "batches", 3, client) for client in clients]
    assert found == [(rng.permutation(20).tolist(), rng.random()) for rng in single]
    assert list(streams(101, "batches", 3, [])) == []
