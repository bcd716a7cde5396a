"""Cells: signs, zeros, what is absent, and differences over the seeds that both have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedreuse.lab.paper.cells import mean_difference, outcome, plain, shown, signed, signed_pair
from fedreuse.lab.paper.published import accuracy
from fedreuse.report.results import read_run
from fedreuse.report.variants import Variant
from tests.report.runs import write_run


def test_numbers_as_text() -> None:
    assert [signed(one) for one in (0.061, -0.001, -2.38, None)] == ["+0.06", "+0.00", "-2.38", "-"]
    assert [signed_pair(one) for one in ((-0.2, 0.21), (1.0, None), None)] == ["-0.20 ± 0.21", "+1.00", "-"]
    assert (shown((0, None)), plain(None)) == ("0.00", "-")


def test_a_difference_takes_the_seeds_that_both_have(tmp_path: Path) -> None:
    one = read_run(write_run(tmp_path / "a", test_score=0.5))
    mine = Variant("mine", (one, replace(one, seed=2, test_score=0.9), replace(one, seed=3, test_score=None)))
    theirs = Variant("theirs", (replace(one, test_score=0.4), replace(one, seed=3, test_score=0.1)))
    assert mean_difference(mine, theirs, accuracy) == 10.0
    assert mean_difference(mine, Variant("nobody", ()), accuracy) is None
    assert outcome(Variant("nobody", ()), None) == ("-", "-", "-", "-")
