"""Variants: means over seeds as JSON, savings against the largest cohorts, and their order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.report.results import Result, read_run
from fedreuse.report.tables import comparison
from fedreuse.report.variants import Largest, by_variant, crossed, memory_of, ranked, saving_of
from tests.report.runs import write_run


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return read_run(write_run(tmp_path / "run", test_score=0.9), "Top-K")


def test_plain_variants_name_direction_and_boundary(result: Result) -> None:
    told = by_variant([result])[0].plain()
    assert told["saving_up (update_fields)"] == pytest.approx(0.81)
    assert told["saving_both (messages)"] == pytest.approx(1 - 420 / 900)
    assert told["seeds"] == [1]


def test_asking_fewer_clients_saves_against_the_largest_cohorts(result: Result) -> None:
    whole = result.savings["update_fields"]
    fewer = replace(whole, up_bytes=38, dense_up_bytes=200)  # half the clients, the same saving on its own
    half = replace(result, variant="half", savings={**result.savings, "update_fields": fewer})
    # 1 - 38 / 400
    assert comparison([result, half], rank="test")[1].rows[1][1] == "90.5"
    told = by_variant([half])[0].plain(Largest.of([result, half]))
    assert told["saving_up (update_fields)"] == pytest.approx(0.81)
    assert told["saving_up (update_fields, largest cohorts)"] == pytest.approx(0.905)


def test_what_is_read_of_a_run(result: Result) -> None:
    assert saving_of("update_fields", "up")(result) == pytest.approx(0.81)
    assert saving_of("absent", "up")(result) is None
    assert crossed("messages", "up")(result) == pytest.approx(90e-6)
    assert memory_of("server")(result) == 2.0
    assert memory_of("server")(replace(result, memory_bytes=None)) is None


def test_without_a_score_a_variant_comes_last(result: Result) -> None:
    blank = replace(result, variant="blank", test_score=None)
    assert [variant.name for variant in ranked(by_variant([blank, result]), "test")] == ["Top-K", "blank"]
