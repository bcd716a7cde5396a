"""Paired differences of a study without a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.report.paired import paired_differences, paired_plain, paired_table
from fedreuse.report.results import read_runs
from tests.report.planned import SCORES, write_planned
from tests.tiny import seal_again


@pytest.mark.slow
def test_every_variant_is_compared_with_the_first(tmp_path: Path) -> None:
    results = read_runs(write_planned(tmp_path, {"B": SCORES["B"], "A": SCORES["A"], "C": SCORES["A"]}))
    pairs = paired_differences(results)
    assert [(name, against) for name, (against, _) in pairs.items()] == [("A", "B"), ("C", "B")]
    assert pairs["A"][1].mean == pytest.approx(0.008)
    table = paired_table(results)
    assert table is not None
    assert table.rows[0][:4] == ("A", "B", "5", "0.80")
    assert table.rows[0][-1] == "1.00 0.00 1.00 2.00 0.00"
    assert json.loads(json.dumps(paired_plain(results)))[0]["by_seed"]["404"] == pytest.approx(0.02)


@pytest.mark.slow
def test_only_true_pairs_count(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    for seed in (401, 402):
        path = place / f"a-{seed}" / "provenance.json"
        plain = json.loads(path.read_text())
        plain["digests"]["schedule"] = "another"
        path.write_text(json.dumps(plain))
        seal_again(path.parent)
    pairs = paired_differences(read_runs(place))
    assert list(pairs["A"][1].by_seed if "A" in pairs else pairs["B"][1].by_seed) == [403, 404, 405]


@pytest.mark.slow
def test_other_data_are_not_compared(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    for config in place.glob("b-*/config.yaml"):
        config.write_text(config.read_text().replace("name: digits", "name: mnist"))
        seal_again(config.parent)
    assert paired_table(read_runs(place)) is None
