"""The answer in sentences: bytes both ways, scores, and differences as far as the seeds carry them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.report.answer import Answer, answer, answer_table, answers, plain_answer, size_text, waiting
from fedreuse.report.results import Result, read_run
from fedreuse.report.statistics.contrasts import assess
from tests.report.runs import write_run

LEAN = Answer("lean", 4.9e6, 98e6, 0.807, 0.806, None, "accuracy", "test", 5, "dense FedAvg")


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return replace(read_run(write_run(tmp_path / "run", test_score=0.9)), variant="Top-K")


def dense(result: Result, **fields: object) -> Result:
    return replace(result, variant="dense", uplink="dense", downlink="dense", reuse_share=0.0, **fields)  # type: ignore[arg-type]


def test_a_sentence_with_an_interval() -> None:
    # differences 0, .2 and .1 points: mean .1, sd .1, t(2) = 4.303: .1 -+ 4.303 * .1 / sqrt(3) = -.148 to .348
    found = replace(LEAN, difference=assess({1: 0.0, 2: 0.002, 3: 0.001}))
    assert answer(found) == (
        "lean sends 4.9 MB instead of 98 MB (20 times less, both ways). Accuracy 80.7 % instead of 80.6 %: difference "
        "+0.1 points (95 %: -0.1 to +0.3, 3 seeds)."
    )


@pytest.mark.parametrize(
    ("by_seed", "words"),
    [
        ({1: 0.001}, "may be chance"),
        ({1: 0.001, 2: -0.003}, "+0.1, -0.3 in 2 seeds, too few"),
        ({1: 0.0}, "(one seed)."),
    ],
)
def test_too_few_seeds_are_said(by_seed: dict[int, float], words: str) -> None:
    assert words in answer(replace(LEAN, difference=assess(by_seed)))


def test_a_zero_has_no_minus() -> None:
    found = answer(replace(LEAN, difference=assess({1: -0.0001, 2: -0.0002, 3: -0.0003})))
    assert "difference 0.0 points" in found


def test_more_bytes_are_more() -> None:
    assert "4 % more" in answer(replace(LEAN, sent=104.0, instead=100.0))
    assert "4 % less" in answer(replace(LEAN, sent=96.0, instead=100.0))
    assert "2.5 times less" in answer(replace(LEAN, sent=40.0, instead=100.0))
    assert "not counted" in answer(replace(LEAN, sent=None))


def test_without_a_score_or_a_common_seed() -> None:
    assert answer(replace(LEAN, score=None)).endswith("It has no test accuracy.")
    assert "share no seed" in answer(LEAN)
    shorter = answer(replace(LEAN, rounds=("6", "4")))
    assert shorter.endswith("It ran 6 rounds and dense FedAvg 4: that alone changes bytes and scores.")
    assert "share no seed" not in shorter
    assert "Validation perplexity 12.5 instead of 12.6" in answer(
        replace(LEAN, metric="perplexity", split="validation", score=12.5, reference_score=12.6)
    )


def test_the_reference_is_the_dense_variant_wherever_it_stands(result: Result) -> None:
    other = [result, dense(result), replace(result, variant="third")]
    assert [(one.variant, one.reference) for one in answers(other)] == [("Top-K", "dense"), ("third", "dense")]
    assert [one.reference for one in answers([result, replace(result, variant="third")])] == ["Top-K"]


def test_a_run_alone_is_compared_with_dense_fedavg_as_computed(result: Result) -> None:
    (one,) = answers([result])
    # messages of the fixture: 420 of 900 bytes
    assert (one.sent, one.instead, one.reference) == (420.0, 900.0, None)
    assert one.saved == pytest.approx(1 - 420 / 900)
    assert answer(one).startswith("Top-K sends 420 B instead of 900 B of dense FedAvg (2.1 times less, both ways).")
    assert answers([replace(result, is_complete=False)]) == []


def test_the_table_fits_a_terminal(result: Result) -> None:
    rows = [replace(one, seed=seed) for seed in (1, 2, 3) for one in (dense(result), result)]
    table = answer_table(rows)
    assert table is not None
    assert [row[0] for row in table.rows] == ["dense", "Top-K"]
    assert table.rows[0][2:4] == ("-", "-")
    assert table.rows[1][2] == "0.0 (0.0 to 0.0)"
    assert answer_table([]) is None


def test_sizes_and_times() -> None:
    assert [size_text(number) for number in (830, 999_700, 9.96e6, 1.5e9)] == ["830 B", "1.0 MB", "10 MB", "1.5 GB"]
    # 4.9 MB over 10 clients at 1 Mbit/s: 8 * 490,000 / 1e6 = 3.92 s; 98 MB: 78.4 s
    assert "take 3.9 s instead of 1 min 18 s" in waiting(LEAN, 10, 1)
    assert "2 h 10 min" in waiting(replace(LEAN, instead=9.75e9), 10, 1)


def test_plain(result: Result) -> None:
    (one,) = answers([result])
    told = plain_answer(one)
    assert told["saved"] == one.saved
    assert told["sentence"] == answer(one)
    assert told["reference"] == "dense FedAvg (computed)"
