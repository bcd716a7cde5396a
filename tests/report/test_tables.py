"""Tables as data: means over seeds by hand, boundaries in every header, no place for an incomplete run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.report.results import Result, read_run
from fedreuse.report.tables import Table, comparison, runs_table, savings_table, score
from fedreuse.report.variants import by_variant, ranked
from tests.report.runs import write_run

LINKS = "error_feedback(top_k 0.2)"


def cells(table: Table, row: int = 0) -> dict[str, str]:
    """The cells of a row by header: a boundary that comes later adds a column and moves the others."""
    return dict(zip((header.replace("\n", " ") for header in table.headers), table.rows[row], strict=True))


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return replace(read_run(write_run(tmp_path / "run", test_score=0.9)), variant="Top-K")


def test_mean_and_spread_over_seeds(result: Result) -> None:
    other = replace(result, seed=2, test_score=0.94)
    outcome, saving = comparison([result, other])
    # mean of 90 and 94 is 92; sample standard deviation sqrt((4 + 4) / 1) = 2.83
    assert outcome.title == "Results (mean ± standard deviation over 2 seeds)"
    assert outcome.rows == (("Top-K", LINKS, "92.00 ± 2.83", "60.00 ± 0.00", "25.0 ± 0.0", "3.0", "2.00", "0.50"),)
    # 1 - 76/400, 1 - 476/800, 1 - 360/800, 1 - 420/900
    shown = cells(saving)
    assert (
        shown.items()
        >= {
            "variant": "Top-K",
            "links": LINKS,
            "up update_fields": "81.00 ± 0.00",
            "both symmetric_fields": "40.50 ± 0.00",
            "both all_fields": "55.00 ± 0.00",
            "both messages": "53.33 ± 0.00",
            "lost clients %": "0.0",
        }.items()
    )


def test_one_seed_has_no_spread(result: Result) -> None:
    outcome, saving = comparison([result])
    assert outcome.title == "Results (one seed)"
    assert outcome.rows[0][2:4] == ("90.00", "60.00")
    assert saving.rows[0][2] == "81.00"


def test_numbers_of_seeds_that_differ_are_shown(result: Result) -> None:
    dense = replace(result, variant="dense")
    outcome, _ = comparison([result, replace(result, seed=2), dense])
    assert [row[0] for row in outcome.rows] == ["Top-K (2)", "dense (1)"]
    assert "the seeds in brackets" in outcome.title


def test_an_incomplete_run_has_no_place(result: Result) -> None:
    assert by_variant([replace(result, is_complete=False)]) == []
    assert [len(variant.results) for variant in by_variant([result, replace(result, is_complete=False)])] == [1]


def test_what_is_missing_is_a_dash(result: Result) -> None:
    bare = replace(result, test_score=None, validation_score=None, memory_bytes=None, savings={}, reuse_share=None,
                   lost_share=None)  # fmt: skip
    outcome, saving = comparison([bare])
    assert outcome.rows == (("Top-K", LINKS, "-", "-", "-", "3.0", "-", "-"),)
    assert saving.rows[0][:2] == ("Top-K", LINKS)
    assert set(saving.rows[0][2:]) == {"-"}
    assert by_variant([bare])[0].plain()["test_score"] is None


def test_another_metric_is_no_percentage(result: Result) -> None:
    outcome, _ = comparison([replace(result, metric="perplexity", test_score=12.5)])
    assert outcome.headers[2] == "test\nperplexity"
    assert outcome.rows[0][2] == "12.5000"
    assert (score(0.5, "accuracy"), score(0.5, "f1"), score(None, "f1")) == ("50.00 %", "0.5000", "-")


def test_the_savings_of_one_run(result: Result) -> None:
    table = savings_table(result)
    assert {row[0] for row in table.rows} >= {"update_fields", "symmetric_fields", "all_fields", "messages"}
    # cumulative up, down, both; then the means of rounds; then the lost share and MB
    assert table.rows[0] == ("update_fields", "81.000 %", "-", "81.000 %", "81.000 %", "-", "81.000 %", "0.0 %", "0.00")
    assert table.rows[1][2] == "0.000 %", "no minus before a zero"


def test_runs_side_by_side(result: Result) -> None:
    table = runs_table([result, replace(result, is_complete=False, rounds=1, test_score=None, savings={})])
    assert table.rows[0] == ("run", "Top-K on digits", "1", "2/2", "90.00 %", "60.00 %", "53.33 %")
    assert table.rows[1][3:5] == ("1/2 *", "-")
    assert "--resume" in table.legend
    assert runs_table([result]).legend == ""
    assert "both ways" in table.headers[-1]
    lossy = runs_table([result, replace(result, lost_share=0.25)])
    assert [row[-1] for row in lossy.rows] == ["0.0 %", "25.0 %"]
    assert lossy.headers[-1] == "lost\nclients"


def test_the_best_come_first_with_every_saving_in_every_direction(result: Result) -> None:
    best = replace(result, variant="best", test_score=0.95, is_approximate=True)
    blank = replace(result, variant="blank", test_score=None)
    assert [variant.name for variant in ranked(by_variant([blank, result, best]), "test")] == ["best", "Top-K", "blank"]
    outcome, saving = comparison([blank, result, best], rank="test")
    assert [row[0] for row in outcome.rows] == [row[0] for row in saving.rows] == ["best *", "Top-K", "blank"]
    assert outcome.title == "Results, by test accuracy (one seed)"
    assert saving.headers[1:4] == ("update_fields\nup", "update_fields\ndown", "update_fields\nboth")
    assert saving.headers[-2:] == ("lost\nclients", "used\nlinks")
    # up 76 of 400; then a dense model down for everybody; all_fields: 60 up, 300 down; messages: 90 of 460, 330 of 440
    shown = cells(saving, 1)
    expected = {"update_fields": ("81.0", "-", "81.0"), "symmetric_fields": ("81.0", "0.0", "40.5"),
                "all_fields": ("85.0", "25.0", "55.0"), "messages": ("80.4", "25.0", "53.3")}  # fmt: skip
    for boundary, numbers in expected.items():
        assert tuple(shown[f"{boundary} {way}"] for way in ("up", "down", "both")) == numbers
    assert saving.rows[1][-2:] == ("0.0", LINKS)
    assert "* outside the method's theory" in saving.legend
    assert "*" not in comparison([result], rank="test")[0].legend


def test_large_percentages_are_short(result: Result) -> None:
    double = replace(result.savings["all_fields"], down_bytes=800)
    shown = comparison([replace(result, savings={"all_fields": double})], rank="test")[1]
    assert cells(shown)["all_fields down"] == "-100"


def test_measured_bytes_stand_beside_the_messages(result: Result) -> None:
    crossed = replace(result.savings["messages"], up_bytes=2_500_000, down_bytes=7_000_000, both=None)
    metered = replace(result, savings={**result.savings, "transport": crossed})
    *_, measured = comparison([metered, replace(result, variant="not metered")])
    assert measured.headers == (
        "variant",
        "messages\nup",
        "messages\ndown",
        "transport\nup",
        "transport\ndown",
        "used\nlinks",
    )
    assert [row[3:] for row in measured.rows] == [("2.50", "7.00", LINKS), ("-", "-", LINKS)]
    assert "transport: TCP payload" in measured.legend
    assert len(comparison([result])) == 2  # without a meter there is no such table
    assert savings_table(metered).rows[-1][-1] == "9.50"


def test_the_links_of_both_directions_stand_beside_the_name(result: Result) -> None:
    both = replace(result, downlink="delta(top_k 0.1)")
    assert comparison([both], rank="test")[0].rows[0][1] == f"{LINKS}; down delta(top_k 0.1)"
