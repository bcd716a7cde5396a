"""The paper's tables: its numbers agree with themselves, and runs stand beside them where they belong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.report.like_paper import like_paper, retained
from fedreuse.report.published import published
from fedreuse.report.results import Result, read_run
from tests.report.runs import write_run


def test_differences_and_gains_follow_from_the_published_columns() -> None:
    for known in published()["round90"].values():
        assert known["dg"][0] - known["fedavg"][0] == pytest.approx(
            known["difference"][0], abs=0.016
        )  # of rounded means
    for known in published()["symmetric"].values():
        assert known["dg"] - known["fedavg"] == pytest.approx(known["gain"], abs=1e-9)
    for dataset, known in published()["symmetric"].items():  # one dense model down halves the saving
        up = published()["round90"][dataset]
        assert (up["fedavg_saving"][0] / 2, up["dg_saving"][0] / 2) == pytest.approx(
            (known["fedavg"], known["dg"]), abs=0.0051
        )


@pytest.fixture
def results(tmp_path: Path) -> list[Result]:
    found = []
    for seed, scores in ((1, (0.80, 0.78)), (2, (0.82, 0.82))):
        for method, score in zip(("fedavg", "dg_fedreuse"), scores, strict=True):
            one = read_run(write_run(tmp_path / f"{method}{seed}", seed=seed, test_score=score))
            found.append(replace(one, method=method, dataset="mnist", uplink="top_k 0.2"))
    return found


@pytest.mark.slow
def test_runs_beside_the_published_numbers(results: list[Result]) -> None:
    *_, round90, symmetric = like_paper(results)
    row = round90.rows[0]
    assert row[:5] == ("MNIST", "2", "partial: 1, 2", "81.00 ± 1.41", "98.93 ± 0.07")
    assert row[7:9] == ("-1.00 ± 1.41", "-0.20 ± 0.21")  # differences -2 and 0 points
    assert row[9:] == ("81.00 ± 0.00", "76.88 ± 0.00", "81.00 ± 0.00", "83.36 ± 0.24")
    assert round90.rows[1][1:5] == ("-", "-", "-", "88.66 ± 0.25"), "what was not run is empty"
    assert symmetric.rows[0] == ("MNIST", "partial: 1, 2", "40.50", "38.44", "40.50", "41.68", "0.00", "3.24")


@pytest.mark.slow
def test_retention_is_against_the_ratio_1(results: list[Result]) -> None:
    dense = replace(results[1], uplink="dense", validation_score=0.8)
    table = like_paper([dense, replace(results[1], validation_score=0.6), results[0]])[2]
    by_ratio = {row[0]: row[1:] for row in table.rows}
    assert by_ratio["0.20"] == ("1", "75.00", "98.0003", "81.00", "85.3388")  # 0.6 / 0.8
    assert by_ratio["1.00"][:2] == ("1", "100.00")
    assert by_ratio["0.05"][:2] == ("0", "-")
    assert retained([dense], 0.05) == (0, None, None)


@pytest.mark.slow
def test_another_uplink_has_no_place_in_the_papers_tables(results: list[Result]) -> None:
    others = [replace(one, uplink="dense") for one in results]
    assert like_paper(others)[3].rows[0][3] == "-"


@pytest.mark.slow
def test_a_part_of_the_papers_seeds_is_said_and_the_whole_is_not_called_partial(results: list[Result]) -> None:
    runs = [replace(one, seed=seed) for one in results[:2] for seed in (101, 202, 303)]
    whole = like_paper(runs)[3]
    assert (whole.title[-6:], whole.rows[0][2]) == ("rounds", "101, 202, 303")
    some = like_paper([one for one in runs if (one.method, one.seed) != ("dg_fedreuse", 202)])[3]
    assert some.title.endswith("90 rounds (partial)")
    assert some.rows[0][2] == "partial: FedAvg 101, 202, 303; DG 101, 303"
    assert "not every seed of the paper (101, 202, 303)" in some.legend
    alone = like_paper(results[:1])[3].rows[0]
    assert (alone[2], alone[3], alone[5]) == ("partial: FedAvg 1; DG none", "80.00", "-")
    sealed = like_paper([replace(one, test_score=None) for one in results])[3]
    assert sealed.rows[0][2:4] == ("-", "-"), "a sealed run has no place in a mean of test scores"


@pytest.mark.slow
def test_the_gain_compares_the_same_seeds(results: list[Result]) -> None:
    other = replace(results[2].savings["symmetric_fields"], both=0.9)  # of a seed that DG-FedReuse does not have
    better = replace(results[2], savings={**results[2].savings, "symmetric_fields": other})
    row = like_paper([*results[:2], better])[4].rows[0]
    assert (row[2], row[4], row[6]) == ("65.25", "40.50", "0.00")  # (40.5 + 90) / 2; 40.5 - 40.5


@pytest.mark.slow
def test_retention_compares_the_same_seeds(results: list[Result]) -> None:
    dense = replace(results[1], uplink="dense", validation_score=0.8)
    other = replace(results[1], seed=7, validation_score=0.1)  # no dense run has this seed
    assert retained([dense, replace(results[1], validation_score=0.6), other], 0.2)[1] == pytest.approx(75)
