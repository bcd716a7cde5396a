"""A plan answered from run directories made by hand, and everything that makes an answer impossible."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.confirmation import confirm
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import read_plan, register
from tests.report.planned import SAME, SCORES, SEEDS, write_planned
from tests.tiny import seal_again


def _change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    seal_again(path.parent)


@pytest.mark.slow
def test_a_claim_is_answered_from_its_pairs(tmp_path: Path) -> None:
    found = confirm(write_planned(tmp_path))
    (answer,) = found.answers
    assert list(answer.assessment.by_seed) == list(SEEDS)
    assert answer.assessment.by_seed[404] == pytest.approx(0.02)
    assert answer.assessment.mean == pytest.approx(0.008)
    assert answer.verdict == "shown"  # within five points
    assert answer.adjusted_p == answer.assessment.t_p
    assert answer.is_first
    assert answer.differing == ()
    assert found.values[frozenset({("method", "A")})] == dict(zip(SEEDS, SCORES["A"], strict=True))


@pytest.mark.slow
def test_several_claims_share_alpha(tmp_path: Path) -> None:
    scores = {**SCORES, "C": (0.81, 0.82, 0.80, 0.84, 0.80)}
    plan = {"contrasts": [SAME, {"of": "A", "against": "C"}, {"of": "B", "against": "C"}]}
    found = confirm(write_planned(tmp_path, scores, plan))
    smallest = min(answer.assessment.t_p or 1 for answer in found.answers)
    assert min(answer.adjusted_p or 1 for answer in found.answers) == pytest.approx(3 * smallest)
    assert [answer.verdict for answer in found.answers][1:] == ["not shown", "not shown"]


@pytest.mark.slow
def test_sign_flips_decide_when_asked(tmp_path: Path) -> None:
    plan = {"contrasts": [SAME], "decide": "sign_flip"}
    (answer,) = confirm(write_planned(tmp_path, plan=plan)).answers
    assert answer.adjusted_p == answer.assessment.sign_flip_p == 1 / 32
    assert answer.verdict == "shown"


@pytest.mark.slow
def test_equal_runs_are_no_test(tmp_path: Path) -> None:
    (answer,) = confirm(write_planned(tmp_path, {"A": SCORES["A"], "B": SCORES["A"]})).answers
    assert answer.verdict == "no test: all differences are equal"


@pytest.mark.slow
def test_blocks_are_claims_of_their_own_and_factorials_are_answered(tmp_path: Path) -> None:
    cells: dict[str | tuple[str, ...], Any] = {
        ("A", "x"): (0.5, 0.6, 0.5, 0.6, 0.5), ("B", "x"): (0.4, 0.5, 0.5, 0.5, 0.4),
        ("A", "y"): (0.6, 0.7, 0.7, 0.8, 0.6), ("B", "y"): (0.3, 0.4, 0.3, 0.4, 0.4),
    }  # fmt: skip
    plan = {"contrasts": [{"of": "A", "against": "B"}], "factorials": [["method", "codec"]]}
    found = confirm(write_planned(tmp_path, cells, plan, axes=("method", "codec")))
    assert [answer.claim.where for answer in found.answers] == ["x", "y"]
    assert found.summaries == {}  # one dataset
    (factorial,) = found.factorials
    # seed 401: B - A at x is -0.1, at y -0.3
    assert factorial.effects["first"].by_seed[401] == pytest.approx(-0.2)
    assert factorial.effects["interaction"].by_seed[401] == pytest.approx(-0.2)


@pytest.mark.slow
def test_contrasts_on_two_datasets_are_summarised(tmp_path: Path) -> None:
    cells: dict[str | tuple[str, ...], Any] = {
        ("A", "digits"): (0.5, 0.6, 0.5, 0.6, 0.5), ("B", "digits"): (0.4, 0.5, 0.5, 0.5, 0.4),
        ("A", "mnist"): (0.6, 0.7, 0.7, 0.8, 0.6), ("B", "mnist"): (0.3, 0.4, 0.3, 0.4, 0.4),
    }  # fmt: skip
    place = write_planned(tmp_path, cells, {"contrasts": [{"of": "A", "against": "B"}]}, axes=("method", "dataset"))
    for config in place.glob("*-mnist-*/config.yaml"):
        config.write_text(config.read_text().replace("name: digits", "name: mnist"))
        seal_again(config.parent)
    found = confirm(place)
    assert found.summaries["A - B: a difference"].num_datasets == 2


@pytest.mark.slow
def test_what_the_pairs_do_not_share_is_told(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    path = place / "a-401" / "provenance.json"
    digests = json.loads(path.read_text())["digests"]
    _change(path, digests={**digests, "schedule": "another"})
    assert confirm(place).answers[0].differing == ("schedule",)


@pytest.mark.slow
def test_a_contrast_that_came_later_is_marked(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    record = read_plan(place)
    assert record is not None
    later = Plan((*record.current.plan.contrasts, Contrast("B", "A", "superiority", 0.0, "higher")))
    register(place, later, record.current.runs, [], amend=True)
    assert [answer.is_first for answer in confirm(place).answers] == [True, False]


@pytest.mark.slow
def test_a_missing_run_is_refused(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    shutil.rmtree(place / "b-403")
    (place / "a-401" / "COMPLETE").unlink()
    with pytest.raises(RunDirectoryError, match=r"missing or incomplete \(2: a-401, b-403\).*same command"):
        confirm(place)


@pytest.mark.slow
def test_runs_of_two_versions_are_refused(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    _change(place / "b-405" / "provenance.json", fedreuse="9.9")
    with pytest.raises(RunDirectoryError, match=r"2 versions of the code .*fedreuse 9.9: 1 runs, such as b-405"):
        confirm(place)


@pytest.mark.slow
def test_a_score_that_was_changed_is_refused(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    confirm(place)
    _change(place / "a-402" / "summary.json", test_score=0.999)
    with pytest.raises(RunDirectoryError, match=r"a-402 fails its audit.*test score is 0.82 by the rows"):
        confirm(place)


@pytest.mark.slow
def test_a_changed_plan_is_refused(tmp_path: Path) -> None:
    place = write_planned(tmp_path)
    path = place / "plan.json"
    path.write_text(path.read_text().replace('"margin": 0.05', '"margin": 0.5'))
    with pytest.raises(RunDirectoryError, match="digest"):
        confirm(place)


def test_a_folder_without_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="has no plan"):
        confirm(tmp_path)
