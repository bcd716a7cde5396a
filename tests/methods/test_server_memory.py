"""Server memory: the mean kept up to date equals the sum, learning rates are taken out, buffers stay out of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.int_map import IntMap
from fedreuse.core.model import Model
from fedreuse.core.population import Population
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, weighted_sum, zeros
from fedreuse.methods.mifa import Remembered
from fedreuse.methods.server_memory import RESUM_EVERY, MemoryServer, MemoryState, remember
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, build, top_k
from tests.servers import ONE, number, start, step, weight

TWO = Population(np.array([10, 30]))


def summed(session: Session) -> Tensors:
    """The mean of the memory from scratch."""
    state, share = session.record.state, session.federation.population.share
    return weighted_sum([(share(i), h) for i, h in sorted(state.memory.items())], state.mean.schema)


@pytest.mark.slow
@pytest.mark.parametrize("uplink", [None, top_k(0.3)], ids=["dense", "top_k"])
@pytest.mark.parametrize("name", ["fedvarp", "mifa", "fedstale"])
def test_the_mean_kept_up_to_date_is_the_sum(name: str, uplink: object) -> None:
    session = Session(QuadraticFederation.draw(6, NOISY), build(name, uplink), Setting(cohort=2))
    for number_ in range(1, 2 * RESUM_EVERY + 2):
        session.advance(1)
        mean = session.record.state.mean
        np.testing.assert_allclose(mean.values, summed(session).values, rtol=1e-12, atol=1e-14)
        if number_ % RESUM_EVERY == 0:
            assert is_equal(mean, summed(session))  # taken afresh: the very same sum


def test_summing_afresh_ends_the_drift_of_float32() -> None:
    # one client swings between 1e4 and 1 in float32: each swing rounds the mean; the fresh sum has no history
    schema = Schema((TensorSpec("fc.weight", (3,), "float32"),))
    flat = {"low": np.array([1.1, 0.3, 0.7], np.float32), "high": np.array([1.1e4, 3.3e4, 7.7e4], np.float32)}
    nothing = Tensors(schema, np.zeros(3, np.float32))
    empty = zeros(Schema())
    state = MemoryState(Model(nothing, empty, empty), None, IntMap(), nothing)
    population = Population(np.array([3, 4, 9]))
    drift = 0.0
    for number_ in range(1, RESUM_EVERY + 1):
        fresh = {number_ % 3: Tensors(schema, flat["high" if number_ % 2 else "low"])}
        state = remember(state, fresh, Cohort(number_, tuple(fresh), 1, population=population))
        exact = weighted_sum([(population.share(i), h) for i, h in sorted(state.memory.items())], schema)
        if number_ < RESUM_EVERY:
            drift = max(drift, float(np.abs(state.mean.values - exact.values).max()))
    assert drift > 1e-4
    assert is_equal(state.mean, exact)


def test_memory_holds_what_was_decoded() -> None:
    session = QuadraticFederation.draw(5, NOISY).play(build("fedvarp", top_k(0.3)), 6)
    for entry in session.record.state.memory.values():
        assert entry.is_sparse
        assert len(entry.values) == 3  # floor(0.3 * 6), floor(0.3 * 4), at least 1 of 2


def test_memory_is_per_learning_rate_by_hand() -> None:
    # client 0 sends 4 at rate 1 and is remembered as 4; client 1 sends 8 at rate 1/2 and is remembered as 16;
    # the mean is 4/4 + 16 * 3/4 = 13
    state = start(MemoryServer(Remembered()), TWO)
    state = remember(state, {0: number(4.0)}, Cohort(1, (0,), 1, population=TWO))
    state = remember(state, {1: number(8.0)}, Cohort(2, (1,), 1, population=TWO, lr_factor=0.5))
    assert {client: float(entry.values[0]) for client, entry in state.memory.items()} == {0: 4.0, 1: 16.0}
    assert state.mean.values.tolist() == [13.0]


def test_a_learning_rate_of_zero_leaves_the_memory_and_the_model() -> None:
    server = MemoryServer(Remembered())
    _, state, _ = step(server, start(server, TWO), Cohort(1, (0,), 1, population=TWO), {0: 4.0})
    _, after, _ = step(server, state, Cohort(2, (0,), 1, population=TWO, lr_factor=0.0), {0: 0.0})
    assert after.memory is state.memory
    assert weight(server, after) == weight(server, state) == 1.0


def test_statistics_are_those_of_who_trained() -> None:
    # the memory holds weights alone: statistics and counters move as in FedAvg
    federation = QuadraticFederation.draw(6, NOISY)
    first, second = (federation.play(build(name), 1) for name in ("mifa", "fedavg"))
    assert is_equal(first.model.buffers, second.model.buffers)
    assert is_equal(first.model.counters, second.model.counters)
    assert first.record.state.mean.schema == federation.schema.weights


def test_nobody_answers() -> None:
    server = MemoryServer(Remembered())
    _, state, _ = step(server, start(server, TWO), Cohort(1, (0,), 1, population=TWO), {0: 4.0})
    _, after, events = step(server, state, Cohort(2, (0, 1), 1, population=TWO), {})
    assert after is state
    assert [event.outcome for event in events.clients] == ["lost", "lost"]


def test_a_full_start_asks_everybody_until_somebody_answered() -> None:
    server = MemoryServer(Remembered(), starts_full=True)
    state = start(server, Population(np.array([10, 30, 10])))
    population = Population(np.array([10, 30, 10]))
    asked, state, _ = step(server, state, Cohort(1, (2,), 1, population=population), {})
    assert list(asked) == [0, 1, 2]
    asked, state, events = step(server, state, Cohort(2, (1,), 1, population=population), {0: 5.0, 2: 10.0})
    assert list(asked) == [0, 1, 2]
    assert [(event.client, event.outcome) for event in events.clients] == [(1, "lost")]
    assert weight(server, state) == pytest.approx(5 / 5 + 10 / 5)  # client 1 counts as zero
    asked, _, _ = step(server, state, Cohort(3, (1,), 1, population=population), {1: 1.0})
    assert list(asked) == [1]


def test_states_start_empty() -> None:
    state = start(MemoryServer(Remembered()), TWO, 3.0)
    assert state.memory == {}
    assert state.mean.schema is ONE.weights
    assert not state.mean.values.any()
    assert replace(state).model.weights.values.tolist() == [3.0]
