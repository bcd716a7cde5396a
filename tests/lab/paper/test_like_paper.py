"""The paper's tables 5 to 7: runs stand beside the published numbers where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.lab.paper.like_paper import like_paper, retained
from fedreuse.lab.paper.protocol import MATRIX, TOP_K, PaperRuns
from fedreuse.report.results import Result, read_run
from fedreuse.report.table_forms import to_markdown
from fedreuse.report.tables import Table
from tests.report.runs import write_run


def _tables(results: Sequence[Result], suite: str = MATRIX) -> dict[int, Table]:
    """By number in the paper."""
    return {int(table.title.split()[1]): table for table in like_paper(PaperRuns({suite: results}))}


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
    tables = _tables(results)
    assert list(tables) == [3, 4, 5, 6, 7, 8, 9, 10, 12]
    fedavg, fedprox, dg = tables[6].rows[:3]
    assert fedavg == (
        "MNIST",
        "FedAvg",
        "partial: 1, 2",
        "81.00 ± 1.41",
        "98.93 ± 0.07",
        "81.00 ± 0.00",
        "76.88 ± 0.00",
    )
    assert fedprox == ("MNIST", "FedProx", "partial: none", "-", "-", "-", "-"), "the paper prints none at round 90"
    assert dg == ("MNIST", "DG", "partial: 1, 2", "80.00 ± 2.83", "98.73 ± 0.27", "81.00 ± 0.00", "83.36 ± 0.24")
    assert tables[6].rows[3][1:5] == ("FedAvg", "-", "-", "88.66 ± 0.25"), "what was not run is empty"
    row = tables[7].rows[0]
    assert row == ("MNIST", "partial: 1, 2", "40.50", "38.44", "40.50", "41.68", "0.00", "3.24")


def test_rows_fit_a_terminal(results: list[Result]) -> None:
    methods = [*results[:2], replace(results[0], method="fedprox")]
    runs = [replace(one, seed=seed, dataset="emnist_balanced") for one in methods for seed in (101, 202, 303)]
    tables = _tables(runs)
    for number in (6, 7, 8, 9, 10, 12):
        rows = [line for line in to_markdown(tables[number]).splitlines() if line.startswith("| EMNIST")]
        assert max(map(len, rows)) <= 100, f"table {number}"


@pytest.mark.slow
def test_retention_is_against_the_ratio_1(results: list[Result]) -> None:
    dense = replace(results[1], uplink="top_k 1.0", validation_score=0.8)
    table = _tables([dense, replace(results[1], validation_score=0.6), results[0]], TOP_K)[5]
    by_ratio = {row[0]: row[1:] for row in table.rows}
    assert by_ratio["0.20"] == ("1", "75.00", "98.0003", "81.00", "85.3388")  # 0.6 / 0.8
    assert by_ratio["1.00"][:2] == ("1", "100.00")
    assert by_ratio["0.05"][:2] == ("0", "-")
    assert retained([dense], 0.05) == (0, None, None)


@pytest.mark.slow
def test_a_part_of_the_papers_seeds_is_said_and_the_whole_is_not_called_partial(results: list[Result]) -> None:
    methods = [*results[:2], replace(results[0], method="fedprox")]
    runs = [replace(one, seed=seed) for one in methods for seed in (101, 202, 303)]
    whole = _tables(runs)
    assert [table.title[-6:] for table in (whole[6], whole[7])] == ["rounds", "tivity"]
    assert [row[2] for row in whole[6].rows[:4]] == ["all 3", "all 3", "all 3", "-"]
    assert "all 3: seeds 101, 202, 303." in whole[6].legend
    some = _tables([one for one in runs if (one.method, one.seed) != ("dg_fedreuse", 202)])
    assert some[6].title.endswith("90 rounds (partial)")
    assert some[6].rows[2][2] == "partial: 101, 303"
    assert some[7].rows[0][1] == "partial: FedAvg 101, 202, 303; DG 101, 303"
    assert "not every seed of the paper (101, 202, 303)" in some[7].legend
    more = _tables([*runs, *(replace(one, seed=7) for one in methods)])[6]
    assert (more.title[-6:], more.rows[0][2]) == ("rounds", "7, 101, 202, 303")
    sealed = _tables([replace(one, test_score=None) for one in results])[6]
    assert sealed.rows[0][2:4] == ("-", "-"), "a sealed run has no place in a mean of test scores"


@pytest.mark.slow
def test_the_gain_compares_the_same_seeds(results: list[Result]) -> None:
    other = replace(results[2].savings["symmetric_fields"], both=0.9)  # of a seed that DG-FedReuse does not have
    better = replace(results[2], savings={**results[2].savings, "symmetric_fields": other})
    row = _tables([*results[:2], better])[7].rows[0]
    assert (row[2], row[4], row[6]) == ("65.25", "40.50", "0.00")  # (40.5 + 90) / 2; 40.5 - 40.5


@pytest.mark.slow
def test_retention_compares_the_same_seeds(results: list[Result]) -> None:
    dense = replace(results[1], uplink="top_k 1.0", validation_score=0.8)
    other = replace(results[1], seed=7, validation_score=0.1)  # no run with ratio 1 has this seed
    assert retained([dense, replace(results[1], validation_score=0.6), other], 0.2)[1] == pytest.approx(75)
