"""What a rule is given and what becomes of its verdicts: a rule of one's own through a real round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedreuse.core.cohort import Cohort
from fedreuse.core.method import Method
from fedreuse.core.population import Population
from fedreuse.core.schema import ModelSchema
from fedreuse.methods.aggregators.aggregator import (
    Aggregated,
    Contribution,
    Statistics,
    fresh_contributions,
    with_buffers,
)
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.age_only import AgeOnly
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.methods.aggregators.numbers import NUMBER, update

SEEN: list[Mapping[int, Contribution]] = []


@dataclass(frozen=True)
class First:
    """The update of the first client, and nobody else's."""

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Everybody else is left out."""
        first = min(contributions)
        kept = {first: contributions[first]}
        verdicts = {client: "left out by first" for client in contributions if client != first}
        direction = with_buffers(kept[first].update.weights, kept, schema)
        return Aggregated(direction, Statistics(contributions, {first: 1.0}), verdicts)


@dataclass(frozen=True)
class Watched:
    """The mean, which leaves nobody out, of contributions that are written down."""

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """As the mean."""
        SEEN.append(contributions)
        return Mean().aggregate(contributions, cohort, schema)


def test_verdicts_become_reasons_and_the_model_follows_the_rule() -> None:
    federation = QuadraticFederation.draw()
    session = Session(federation, Method(*Averaging(aggregate=First()).halves("dense")), Setting(cohort=3)).advance(1)
    first, *others = session.ledger.events
    assert first.reason == ""
    assert {event.reason for event in others} == {"left out by first"}
    trained = federation.trainer(first.client, 1).train(federation.initial).model
    start = federation.initial.weights.values
    np.testing.assert_array_equal(session.model.weights.values, start + (trained.weights.values - start))


def test_a_rule_sees_what_is_fresh_and_what_is_reused_and_how_old() -> None:
    SEEN.clear()
    method = DgFedReuse(gate=AgeOnly(max_age=3, quota=0.0), aggregate=Watched(), mu=0.0, rho=0.5)
    federation = QuadraticFederation.draw(3)
    Session(federation, Method(*method.halves("dense")), Setting(cohort=3)).advance(3)
    assert [[one.age for one in given.values()] for given in SEEN] == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert [one.decay for one in SEEN[2].values()] == [0.25] * 3
    assert not any(one.is_fresh for one in SEEN[1].values())
    assert all(one.buffers_weight is None for one in SEEN[1].values())  # nobody trained, so no statistics move


def test_whom_a_rule_leaves_out_is_not_reused() -> None:
    method = DgFedReuse(gate=AgeOnly(max_age=3, quota=0.0), aggregate=First(), mu=0.0)
    session = Session(QuadraticFederation.draw(3), Method(*method.halves("dense")), Setting(cohort=3)).advance(2)
    assert [event.outcome for event in session.ledger.events] == ["fresh"] * 3 + ["reused", "fresh", "fresh"]


def test_statistics_by_hand() -> None:
    cohort = Cohort(1, (0, 1), 1, population=Population(np.array([10, 30])))
    given = fresh_contributions({0: update(2.0), 1: update(4.0)}, cohort)
    statistics = Statistics(given, {0: 0.25, 1: 0.75})
    assert statistics.num_contributions == 2
    assert statistics.mean_square_norm == 0.25 * 4 + 0.75 * 16
    assert with_buffers(update(1.0).weights, given, NUMBER).buffers.values.tolist() == [3.5]
