"""The rounds of a run as arrays: the same numbers that the directory's own readers give."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedreuse.accounting.work import total_work
from fedreuse.report.results import read_run
from tests.report.runs import write_run


def test_a_history_says_what_the_directory_says(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "a", scores=(None, 0.6))
    history = read_run(directory).history
    assert list(history.metrics) == directory.metrics()
    assert list(history.events) == directory.events()
    for name, traffic in directory.traffic().items():
        np.testing.assert_array_equal(history.traffic[name].both, traffic.both)
    assert history.flops.tolist() == [2_000_000_000, 1_000_000_000]
    assert history.flops.sum() == total_work(directory.ledger()).flops
    assert history.seconds == [1.5, 3.0]
    rounds, scores = history.taken("validation_score")
    assert (rounds.tolist(), scores.tolist()) == ([2], [0.6])
    assert (history.first_at(0.6), history.first_at(0.61)) == (1, None)


def test_before_the_first_round_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text((write_run(tmp_path / "a").path / "config.yaml").read_text())
    result = read_run(type(write_run(tmp_path / "b"))(tmp_path))
    assert (result.rounds, result.history.seconds, result.savings, result.work) == (0, [], {}, {})
