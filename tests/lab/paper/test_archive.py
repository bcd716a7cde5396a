"""The paper's tables 8, 9, 10 and 12: FedProx, FedAdam, mechanisms and differences by seed, of runs and published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.lab.paper.archive import archival_table, fedadam_table, mechanisms_table, seeds_table
from fedreuse.report.results import Result, read_run
from tests.report.runs import write_run


@pytest.fixture
def results(tmp_path: Path) -> list[Result]:
    """FedAvg 80 and 82, FedProx 81 and 81, DG 78 and 82, with the seeds 101 and 202."""
    found = []
    for seed, scores in ((101, (0.80, 0.81, 0.78)), (202, (0.82, 0.81, 0.82))):
        for method, score in zip(("fedavg", "fedprox", "dg_fedreuse"), scores, strict=True):
            one = read_run(write_run(tmp_path / f"{method}{seed}", seed=seed, test_score=score))
            found.append(replace(one, method=method, dataset="mnist", uplink="top_k 0.2"))
    return found


def test_fedprox_stands_beside_the_published_one(results: list[Result]) -> None:
    rows = archival_table(results).rows
    assert rows[1] == ("MNIST", "FedProx", "81.00 ± 0.00", "99.11 ± 0.07", "81.00 ± 0.00", "76.88 ± 0.00")
    assert rows[3] == ("MNIST", "DG - FedAvg", "-1.00", "+0.06", "+0.00", "+7.44")  # -2 and 0; the same savings
    assert rows[5] == ("FashionMNIST", "FedProx", "-", "90.73 ± 0.41", "-", "76.88 ± 0.00")


def test_differences_by_seed(results: list[Result]) -> None:
    table = seeds_table(results)
    assert table.headers == ("Dataset", "Difference", "101", "202", "303", "mean ± SD")
    assert [row[1:] for row in table.rows[:4]] == [
        ("DG - FedAvg, runs", "-2.00", "+0.00", "-", "-1.00 ± 1.41"),
        ("DG - FedAvg, paper", "-", "-", "-", "-0.20 ± 0.21"),
        ("DG - FedAvg, paper's best", "+0.08", "-0.07", "+0.16", "+0.06 ± 0.12"),
        ("DG - FedProx, runs", "-3.00", "+1.00", "-", "-1.00 ± 2.83"),
    ]
    alone = seeds_table([one for one in results if one.seed == 202])
    assert alone.rows[0][2:] == ("-", "+0.00", "-", "+0.00"), "one seed has a difference and no deviation"
    assert seeds_table([replace(results[0], seed=7)]).headers[2:6] == ("101", "202", "303", "7")


def test_runs_with_other_cohorts_are_not_paired(results: list[Result], tmp_path: Path) -> None:
    other = read_run(write_run(tmp_path / "other", seed=101, digests={"schedule": "another"}))
    apart = replace(other, method="dg_fedreuse", dataset="mnist", uplink="top_k 0.2")
    assert seeds_table([results[0], apart]).rows[0][2:] == ("-", "-", "-", "-")


def test_fedadam_and_mechanisms(results: list[Result]) -> None:
    adam = fedadam_table([replace(results[0], method="fedadam")])
    assert adam.rows[0] == ("MNIST", "80.00", "99.07 ± 0.16", "98.93 ± 0.16", "81.00", "76.88 ± 0.00")
    assert "150 to 263 rounds" in adam.legend
    rows = mechanisms_table([*results, replace(results[0], uplink="dense", test_score=0.9)]).rows
    assert rows[0] == ("MNIST", "Dense FedAvg", "90.00", "99.10 ± 0.13", "81.00", "0.00")
    assert rows[1][2:4] == ("-", "99.05 ± 0.07")
    assert rows[2][2:4] == ("81.00 ± 1.41", "99.07 ± 0.09")
