"""The paper's numbers agree with themselves across its tables, and runs are found by dataset, method and ratio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest

from fedreuse.lab.paper.published import NAMES, accuracy, published, saving, variant_of
from fedreuse.report.results import read_run
from tests.report.runs import write_run


def test_the_tables_share_their_datasets_and_numbers() -> None:
    known = published()
    for table in ("data", "round90", "symmetric", "primary", "fedadam", "mechanism", "by_seed"):
        assert list(known[table]) == list(NAMES)
    for dataset in NAMES:
        primary, mechanism = known["primary"][dataset], known["mechanism"][dataset]
        assert primary["dg_fedreuse"] == mechanism["both"]
        assert primary["fedavg"] == mechanism["top_k"]
        assert primary["difference"] == known["by_seed"][dataset]["mean"][0]
    reuse = [one["reuse"][1][0] for one in known["mechanism"].values()]
    assert (min(reuse), max(reuse)) == (32.43, 37.28)  # the range that its text names
    assert sum(one["train"] for one in known["data"].values()) == 2 * 60_000 + 112_800 + 89_996 + 2 * 50_000


def test_differences_and_gains_follow_from_the_published_columns() -> None:
    for known in published()["round90"].values():
        difference = known["dg"][0] - known["fedavg"][0]
        assert difference == pytest.approx(known["difference"][0], abs=0.016)  # of rounded means
    for known in published()["symmetric"].values():
        assert known["dg"] - known["fedavg"] == pytest.approx(known["gain"], abs=1e-9)
    for dataset, known in published()["symmetric"].items():  # one dense model down halves the saving
        up = published()["round90"][dataset]
        half = (up["fedavg_saving"][0] / 2, up["dg_saving"][0] / 2)
        assert half == pytest.approx((known["fedavg"], known["dg"]), abs=0.0051)
    for known in published()["primary"].values():
        ours, theirs = known["dg_fedreuse"], known["fedavg"]
        assert ours[0][0] - theirs[0][0] == pytest.approx(known["difference"], abs=0.016)
        assert ours[1][0] - theirs[1][0] == pytest.approx(known["gain"], abs=0.016)


def test_means_over_seeds_follow_from_the_published_differences() -> None:
    for known in published()["by_seed"].values():
        assert len(known["differences"]) == len(published()["seeds"])
        mean, spread = known["mean"]
        assert fmean(known["differences"]) == pytest.approx(mean, abs=0.0101)  # each of the three is rounded
        assert stdev(known["differences"]) == pytest.approx(spread, abs=0.0101)


def test_the_best_accuracy_is_no_less_than_that_of_a_given_round() -> None:
    for dataset, best in published()["primary"].items():
        fixed = published()["round90"][dataset]
        assert best["fedavg"][0][0] >= fixed["fedavg"][0]
        assert best["dg_fedreuse"][0][0] >= fixed["dg"][0]
    for known in published()["fedadam"].values():
        assert known["best"][0] >= known["terminal"][0]


def test_runs_are_found_by_dataset_method_and_ratio(tmp_path: Path) -> None:
    one = replace(read_run(write_run(tmp_path / "a", test_score=0.5)), dataset="mnist", uplink="top_k 0.2")
    dense = replace(one, uplink="dense")
    assert variant_of([one, dense], "mnist", "dg_fedreuse").results == (one,)
    assert variant_of([one, dense], "mnist", "dg_fedreuse", 1.0).results == (dense,)
    assert variant_of([one], "cifar10", "dg_fedreuse").results == ()
    assert accuracy(one) == 50.0
    assert saving()(one) == 100 * one.savings["update_fields"].up
