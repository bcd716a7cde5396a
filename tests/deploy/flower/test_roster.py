"""Who plays whom: the first to claim a client, if both ends agree."""

from __future__ import annotations

import pytest

from fedreuse.config.run_config import RunConfig
from fedreuse.deploy.flower.roster import Roster, facts_of
from fedreuse.learning.trainer import initial_network
from tests.tiny import tiny


@pytest.fixture
def config() -> RunConfig:
    return tiny()


def facts(examples: int, config: RunConfig) -> dict[str, object]:
    schema = initial_network(config.network, (1, 8, 8), 4, 0).schema
    return facts_of("abc", schema, examples)


def roster_of(config: RunConfig) -> tuple[Roster, list[str]]:
    told: list[str] = []
    expected = {0: facts(20, config), 1: facts(30, config)}
    return Roster(expected.get, told.append), told


def test_a_node_that_agrees_plays_its_client(config: RunConfig) -> None:
    roster, _ = roster_of(config)
    assert roster.strangers({7, 8}) == {7, 8}
    assert roster.admit(7, 0, facts(20, config))
    assert (roster.nodes, roster.strangers({7, 8})) == ({0: 7}, {8})


def test_a_second_claim_waits_until_the_first_node_is_gone(config: RunConfig) -> None:
    roster, told = roster_of(config)
    roster.admit(7, 0, facts(20, config))
    assert not roster.admit(8, 0, facts(20, config))
    assert "has to wait" in told[-1]
    assert roster.strangers({8}) == {8}
    assert roster.admit(8, 0, facts(20, config))
    assert roster.nodes == {0: 8}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"fedreuse": "0.0.1"}, "same version"),
        ({"wire": 99}, "wire is 99"),
        ({"configuration": "xyz"}, "same app folder"),
        ({"schema": "other"}, "another shape"),
        ({"examples": 21}, "examples is 21, but here it is 20"),
        ({"examples": "9" * 70_000}, "examples is '" + "9" * 79 + "..., but here it is 20"),
    ],
)
def test_a_mismatch_is_refused_for_good_and_says_why(
    changed: dict[str, object], reason: str, config: RunConfig
) -> None:
    roster, told = roster_of(config)
    assert not roster.admit(7, 0, {**facts(20, config), **changed})
    assert reason in told[-1]
    assert roster.strangers({7}) == set()
    assert roster.strangers(set()) == set()
    assert roster.strangers({7}) == {7}  # it left and came back: perhaps mended


def test_there_is_no_such_client(config: RunConfig) -> None:
    roster, told = roster_of(config)
    assert not roster.admit(7, 5, facts(20, config))
    assert "there is no client 5" in told[-1]


def test_other_frozen_weights_are_refused_in_hello() -> None:
    lora = {"name": "lora", "of": {"name": "cnn", "width": 2, "hidden": 8}, "targets": ["classifier.0"], "rank": 2}
    network = tiny(network=lora).network
    mine, same, other = (facts_of("abc", initial_network(network, (1, 8, 8), 4, seed).schema, 20) for seed in (0, 0, 1))
    told: list[str] = []
    roster = Roster({0: mine}.get, told.append)
    assert mine["schema"] == other["schema"]
    assert not roster.admit(7, 0, other)
    assert "its frozen is" in told[-1]
    assert "put the same pretrained files on every node" in told[-1]
    assert roster.admit(8, 0, same)
