"""Rules around rules: weights of single clients, their nesting in a configuration, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.plain import Plain
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Method
from fedreuse.methods.aggregators.aggregator import Aggregator, aggregators
from fedreuse.methods.aggregators.bucketing import Bucketing
from fedreuse.methods.aggregators.clipping import Clipping
from fedreuse.methods.aggregators.geometric_median import GeometricMedian
from fedreuse.methods.aggregators.krum import MultiKrum
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.aggregators.median import Median
from fedreuse.methods.aggregators.nearest_neighbour_mixing import NearestNeighbourMixing
from fedreuse.methods.aggregators.private_mean import PrivateMean
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.age_only import AgeOnly
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import build
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors

INNER = [Mean(), GeometricMedian(), MultiKrum(0.2), Clipping()]


@pytest.mark.parametrize("inner", INNER, ids=lambda inner: type(inner).__name__)
@pytest.mark.parametrize("rule", [NearestNeighbourMixing, Bucketing])
def test_the_weights_of_clients_make_the_direction(rule: type[Aggregator], inner: Aggregator) -> None:
    matrix, shares = round_of(43, size=9)
    given, schema = vectors(matrix, shares)
    made = rule(inner=inner).aggregate(given, ROUND, schema)
    wanted = sum(weight * matrix[client] for client, weight in made.statistics.weights.items())
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-9, atol=1e-9)
    assert made.statistics.contributions is given


def test_a_verdict_needs_one_of_each_group() -> None:
    # one bucket of all, whose mean is clipped
    made = Bucketing(5, Clipping(bound=1.0)).aggregate(contributions(9.0, 9.0, 9.0, 9.0, 9.0), ROUND, NUMBER)
    assert made.verdicts == dict.fromkeys(range(5), "clipped")
    # mixed, 0, 1, 3, 4 and 100 become 2, 2, 2, 2 and 27: only the last mean is clipped, and 100 is in no other
    made = NearestNeighbourMixing(0.2, Clipping(bound=2.5)).aggregate(
        contributions(0.0, 1.0, 3.0, 4.0, 100.0), ROUND, NUMBER
    )
    assert made.verdicts == {4: "clipped"}


def test_whom_mixing_leaves_out_is_forgotten_by_the_cache() -> None:
    rule = Bucketing(2, MultiKrum(0.2, keep=2))
    method = DgFedReuse(gate=AgeOnly(max_age=9, quota=0.0), aggregate=rule, mu=0.0)
    session = Session(QuadraticFederation.draw(6), Method(*method.halves("dense")), Setting(cohort=6)).advance(1)
    left_out = {event.client for event in session.ledger.events if event.reason == "left out by multi_krum"}
    assert len(left_out) == 2
    second = session.advance(1).ledger.events[6:]
    assert {event.client for event in second if event.outcome == "fresh"} == left_out


def test_rules_nest_in_a_configuration() -> None:
    wanted = Bucketing(2, NearestNeighbourMixing(0.4, MultiKrum(0.4)))
    written = {"name": "nearest_neighbour_mixing", "bad": 0.4, "inner": {"name": "multi_krum", "bad": 0.4}}
    method = build("averaging", aggregate={"name": "bucketing", "inner": written})
    assert method.server.aggregate == wanted
    assert aggregators.name_of(wanted) == "bucketing"
    given, schema = vectors(*round_of(47, size=12))
    assert np.isfinite(wanted.aggregate(given, ROUND, schema).direction.weights.values).all()


@pytest.mark.parametrize("rule", [NearestNeighbourMixing, Bucketing])
def test_what_is_refused(rule: type[Aggregator]) -> None:
    with pytest.raises(ConfigError, match=r"\.inner: private_mean is refused"):
        rule(inner=PrivateMean())
    with pytest.raises(ConfigError, match=r"\.inner: mean with weighting ht is refused"):
        rule(inner=Mean("ht"))


@pytest.mark.parametrize("rule", [NearestNeighbourMixing, Bucketing])
def test_dropped_coordinates_are_refused_as_by_the_inner_rule(rule: type[Aggregator]) -> None:
    link = {"update": Plain(TopK(0.2))}
    with pytest.raises(ConfigError, match=r"method\.aggregate: .* drops coordinates"):
        Recipe(Averaging(aggregate=rule(inner=Median())), link)
    assert Recipe(Averaging(aggregate=rule(inner=GeometricMedian())), link).build()
