"""The answers as tables and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from fedreuse.core.registry import parse
from fedreuse.lab.plans.confirmation import Confirmation, confirm
from fedreuse.lab.plans.confirmation_tables import (
    claim_tables,
    confirmation_plain,
    confirmation_tables,
    interval,
    medians_table,
    number,
    p_value,
    plan_notes,
)
from fedreuse.lab.plans.hierarchy import OverDatasets
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import register
from fedreuse.report.statistics.intervals import Interval
from tests.report.planned import SAME, SEEDS, write_planned

POINTS = ("points", 100.0)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Confirmation:
    plan = {"contrasts": [SAME], "targets": [0.5, 0.9]}
    return confirm(write_planned(tmp_path_factory.mktemp("study"), plan=plan))


@pytest.mark.slow
def test_the_claims_come_first_then_every_observation(found: Confirmation) -> None:
    claims, observations, differences, *targets = confirmation_tables(found)
    assert claims.rows[0][0] == "A - B: equivalence within 5 points"
    assert claims.rows[0][1] == "0.80"
    assert claims.rows[0][-1] == "shown"
    assert claims.rows[0][5] == "0.0312 (0.0312)"
    assert observations.headers == ("variant", *(str(seed) for seed in SEEDS))
    assert observations.rows[0] == ("A", "80.00", "82.00", "81.00", "83.00", "80.00")
    assert differences.rows[0][0] == "A - B: equivalence within 5 points"
    assert differences.rows[0][4] == "2.00"
    assert [table.title for table in targets[:2]] == [
        "To validation score 0.5: rounds",
        "To validation score 0.5: MB (messages, both)",
    ]
    assert targets[4].rows[0][1:4] == ("0 of 5", "-", "-")


@pytest.mark.slow
def test_the_way_to_a_target_fits_one_table(found: Confirmation) -> None:
    """Every run arrives at its first evaluation for 0.5, and none at 0.9."""
    table = medians_table(found, 0.5, ("rounds", "bytes"))
    rounds, crossed = confirmation_tables(found)[3:5]
    assert table.headers == ("variant", "reached", "rounds", "MB (messages, both)")
    for row, of_rounds, of_bytes in zip(table.rows, rounds.rows, crossed.rows, strict=False):
        assert row[:2] == of_rounds[:2]
        assert row[2] == f"{of_rounds[2]} ({of_rounds[3]})".replace(".00", "")
        assert row[3] == f"{of_bytes[2]} ({of_bytes[3]})"
    assert medians_table(found, 0.9, ("rounds",)).rows[0] == ("A", "0 of 5", "-")


@pytest.mark.slow
def test_json_holds_the_same(found: Confirmation) -> None:
    plain = json.loads(json.dumps(confirmation_plain(found), allow_nan=False))
    assert plain["digest"] == found.record.current.digest
    assert plain["claims"][0]["verdict"] == "shown"
    assert plain["claims"][0]["by_seed"]["404"] == pytest.approx(0.02)
    assert plain["targets"][0]["variants"][0]["num_reached"] == 5
    assert plain["observations"][0]["labels"] == {"method": "A"}


def test_the_words_name_the_plan(found: Confirmation) -> None:
    (line,) = plan_notes(found)
    assert line.startswith(f"plan {found.record.current.digest[:12]}, registered ")


@pytest.mark.slow
def test_the_stored_plan_keeps_its_margin_while_words_and_summaries_show_points(tmp_path: Path) -> None:
    plan = {"contrasts": [SAME]}
    place = write_planned(tmp_path, plan=plan)
    entries = json.loads((place / "study.json").read_text())["runs"]
    later: Plan = parse(Plan, {"contrasts": [{**SAME, "margin": 0.01}]}, "plan")
    register(place, later, [{"labels": one["labels"], "run_id": one["run_id"]} for one in entries], [], amend=True)
    found = confirm(place)
    assert plan_notes(found)[-1].endswith(": A - B: equivalence within 1 point.")
    assert confirmation_plain(found)["claims"][0]["contrast"]["margin"] == 0.01


@pytest.mark.slow
def test_over_datasets_margins_are_in_points_too(found: Confirmation) -> None:
    summary = OverDatasets(0.01, Interval(0.0, 0.02), 0.0, 0.0, 2)
    table = claim_tables(replace(found, summaries={found.answers[0].claim.contrast.title: summary}))[3]
    assert table.rows[0][:3] == ("A - B: equivalence within 5 points", "2", "1.00")


def test_numbers_and_intervals() -> None:
    assert number(None, POINTS) == "-"
    assert number((0.1 + 0.2 - 0.3) / 2, POINTS) == "0.00"
    assert number(0.0123, POINTS) == "1.23"
    assert number(0.000012, POINTS) == "0.0012"
    assert interval(None, POINTS) == "-"
    assert interval(Interval(0.01, inf), POINTS) == "1.00 to ..."
    assert p_value(None) == "-"
    assert p_value(0.0) == "<0.0001"
