"""A gate study drawn, on probes made by hand."""

from __future__ import annotations

import pytest

from fedreuse.lab.gate.probe import Probe
from fedreuse.lab.gate.tables import PREDICTORS, flip_rate, gate_tables, predictions
from tests.lab.gate.test_probe import PROBE


def _probe(**changes: object) -> Probe:
    return Probe(**{**PROBE, **changes})


def test_two_draws_of_four_disagree() -> None:
    # 2 fresh and 2 not: 4 of the 6 pairs disagree
    assert flip_rate([_probe()]) == pytest.approx(4 / 6)
    assert flip_rate([_probe(scores=(1.0, 1.0))]) == 0
    assert flip_rate([]) is None


def test_tables_say_how_repeatable_and_how_telling_the_score_is() -> None:
    probes = [
        _probe(client=1, scores=(0.1, 0.1), harm=-0.1, age=1, cosine=0.9),
        _probe(client=2, scores=(0.5, 0.5), harm=0.1, age=3, cosine=0.5),
        _probe(client=3, scores=(0.95, 0.85), harm=0.2, age=2, cosine=0.1),
        _probe(client=4, round_number=9, scores=(0.2, 0.2), harm=0.1, age=1, cosine=0.2),
    ]
    reliability, margins, validity = gate_tables(probes)
    first, second = reliability.rows
    assert first[:3] == ("4", "3", "0.900")
    assert first[6:] == ("16.7%", "33.3%", "100.0% (1)", "16.7%")
    assert second[3:6] == ("-", "-", "-")  # one client says nothing about clients
    assert [row[0] for row in validity.rows] == list(PREDICTORS)
    by_name = {row[0]: row for row in validity.rows}
    assert by_name["proxy score, one draw"][1:4] == ("1", "1", "-")
    assert by_name["age"][2] == "1"
    assert "above zero in 3 of 4 cases" in validity.legend
    # mean scores .1, .5, .9 and .2 against a threshold of .9
    assert [row[:2] for row in margins.rows] == [
        ("0 to 0.02", "1"), ("0.02 to 0.05", "0"), ("0.05 to 0.1", "0"), ("0.1 to 0.2", "0"), ("above 0.2", "3"),
    ]  # fmt: skip
    assert [row[2] for row in margins.rows] == ["100.0%", "-", "-", "-", "0.0%"]


def test_predictions_are_read_by_name() -> None:
    assert predictions([_probe(), _probe(relative_drift=2.0)])["drift over the update's length"] == [0.5, 2.0]
