"""The paper's numbers agree with themselves across its tables, and runs are found by dataset, method and ratio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedreuse.report.published import NAMES, accuracy, published, saving, variant_of
from fedreuse.report.results import read_run
from tests.report.runs import write_run


def test_the_tables_share_their_datasets_and_numbers() -> None:
    known = published()
    for table in ("data", "round90", "symmetric", "primary", "mechanism"):
        assert list(known[table]) == list(NAMES)
    for dataset in NAMES:
        primary, mechanism = known["primary"][dataset], known["mechanism"][dataset]
        assert primary["dg_fedreuse"][1] == mechanism["both"]
        assert primary["fedavg"][1] == mechanism["top_k"]
    reuse = [one["reuse"][0] for one in known["mechanism"].values()]
    assert (min(reuse), max(reuse)) == (32.43, 37.28)  # the range that its text names
    assert sum(one["train"] for one in known["data"].values()) == 2 * 60_000 + 112_800 + 89_996 + 2 * 50_000


def test_runs_are_found_by_dataset_method_and_ratio(tmp_path: Path) -> None:
    one = replace(read_run(write_run(tmp_path / "a", test_score=0.5)), dataset="mnist", uplink="top_k 0.2")
    dense = replace(one, uplink="dense")
    assert variant_of([one, dense], "mnist", "dg_fedreuse").results == (one,)
    assert variant_of([one, dense], "mnist", "dg_fedreuse", 1.0).results == (dense,)
    assert variant_of([one], "cifar10", "dg_fedreuse").results == ()
    assert accuracy(one) == 50.0
    assert saving()(one) == 100 * one.savings["update_fields"].up
