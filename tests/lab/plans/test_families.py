"""What an amendment after the first result may change: nothing of the first answers, and what it adds is marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.correction import adjusted
from fedreuse.lab.plans.families import Answered, Observed, answer_families
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import Entry, PlanRecord

NAMES = ("base", "v0", "v1", "v2", "v3")
FOUR = Plan(tuple(Contrast(name, "base") for name in NAMES[1:]))
# p = 0.0044 for v0 with five seeds, and far from it for the others
DIFFERENCES = {
    "base": [0.0] * 10,
    "v0": [0.8, 1.0, 1.6, 0.9, 0.6, 0.1, 0.2, 0.0, 0.1, 0.2],
    "v1": [0.5, -0.4, 0.1, -0.3, 0.3, 0.6, 0.5, 0.5, 0.6, 0.5],
    "v2": [-0.2, 0.3, -0.1, 0.2, -0.4, 0.1, 0.0, 0.2, 0.1, 0.0],
    "v3": [0.1, -0.2, 0.3, -0.3, 0.2, 0.0, 0.1, 0.3, -0.2, 0.1],
}


def entry(plan: Plan, num_seeds: int = 5, complete: tuple[str, ...] = (), names: tuple[str, ...] = NAMES) -> Entry:
    runs: list[Mapping[str, Any]] = [
        {"labels": {"method": name, "seed": f"seed {seed}"}, "run_id": f"{name} {seed}"}
        for name in names
        for seed in range(num_seeds)
    ]
    return Entry(plan, tuple(runs), "digest", "now", complete)


def answer(*entries: Entry) -> list[Answered]:
    cells = {frozenset({("method", name)}): dict(enumerate(values)) for name, values in DIFFERENCES.items()}
    seeds = {frozenset({("method", name), ("seed", f"seed {seed}")}): seed for name in NAMES for seed in range(10)}
    return answer_families(PlanRecord(entries), Observed(lambda _: cells, seeds))


def shape(answers: list[Answered]) -> list[tuple[str, int, bool]]:
    return [(one.claim.contrast.of, len(one.assessment.by_seed), one.is_late) for one in answers]


def test_dropped_contrasts_stay_in_the_family() -> None:
    first = answer(entry(FOUR))
    assert first[0].assessment.t_p == pytest.approx(0.00435, abs=5e-5)
    assert first[0].adjusted_p == pytest.approx(4 * (first[0].assessment.t_p or 1))
    after = answer(entry(FOUR), entry(Plan(FOUR.contrasts[:1]), complete=("a",)))
    assert [(one.adjusted_p, one.verdict) for one in after] == [(one.adjusted_p, one.verdict) for one in first]
    assert not any(one.is_late for one in after)


def test_an_amendment_before_the_first_result_is_the_plan() -> None:
    (one,) = answer(entry(FOUR), entry(Plan(FOUR.contrasts[:1])))
    assert (one.adjusted_p, one.is_late) == (one.assessment.t_p, False)


def test_added_contrasts_are_exploratory_and_corrected_for_both_families() -> None:
    two = Plan(FOUR.contrasts[:2])
    answers = answer(entry(two), entry(FOUR, complete=("a",)))
    assert shape(answers) == [("v0", 5, False), ("v1", 5, False), ("v2", 5, True), ("v3", 5, True)]
    assert [one.verdict for one in answers[2:]] == ["exploratory: p > 0.05"] * 2
    whole = adjusted([one.assessment.t_p for one in answers])
    assert [one.adjusted_p for one in answers[2:]] == whole[2:]
    assert [one.adjusted_p for one in answers[:2]] == adjusted([one.assessment.t_p for one in answers[:2]])


def test_seeds_added_after_a_look_leave_the_first_answer_and_mark_the_second() -> None:
    plan = Plan(FOUR.contrasts[1:2])
    before, after = answer(entry(plan)), answer(entry(plan), entry(plan, 10, ("a",)))
    assert shape(after) == [("v1", 5, False), ("v1", 10, True)]
    assert after[0].adjusted_p == before[0].adjusted_p
    assert after[1].assessment.t_p == pytest.approx(0.0349, abs=1e-4)  # alone it would be a claim
    assert (after[0].verdict, after[1].verdict) == ("not shown", "exploratory: p > 0.05")


def test_other_rules_touch_every_answer() -> None:
    answers = answer(entry(FOUR), entry(replace(FOUR, correction="none"), complete=("a",)))
    assert [one.is_late for one in answers] == [False] * 4 + [True] * 4
    assert not any(one.verdict.startswith("shown") for one in answers[4:])


def test_a_plan_after_the_results_confirms_nothing() -> None:
    answers = answer(entry(FOUR, complete=("a",)))
    assert {one.is_late for one in answers} == {True}
    assert not any(one.verdict.startswith("shown") for one in answers)


def test_declared_looks_share_alpha() -> None:
    plan = Plan(FOUR.contrasts[:1], looks=(5, 10))
    assert plan.looks_until(10) == {5: 0.025, 10: 0.025}
    assert sum(Plan(FOUR.contrasts, alpha=0.1, looks=(6, 8, 20)).looks_until(20).values()) == pytest.approx(0.1)
    (first,) = answer(entry(plan))
    assert first.verdict == "shown at the look with 5 seeds"  # p = 0.0044, below 0.025
    (second,) = answer(entry(plan), entry(plan, 10, ("a",)))
    assert (second.verdict, second.is_late) == (first.verdict, False)
    other = Plan(FOUR.contrasts[1:2], looks=(5, 10))
    (late,) = answer(entry(other), entry(other, 10, ("a",)))
    assert (late.verdict, len(late.assessment.by_seed)) == ("not shown", 10)  # p = 0.035, above 0.025


def test_a_look_that_was_not_declared_is_an_amendment() -> None:
    plan = Plan(FOUR.contrasts[:1], looks=(5, 10))
    answers = answer(entry(plan), entry(plan, 7, ("a",)))
    assert shape(answers) == [("v0", 5, False), ("v0", 7, True)]
    for seeds in ([1, 2, 3, 4, 5, 6], list(range(11))):
        with pytest.raises(ConfigError, match=r"tested with 5 or 10 seeds \(looks\)"):
            plan.check(seeds, {"method": NAMES})
    with pytest.raises(ConfigError, match="ascending"):
        Plan(FOUR.contrasts, looks=(10, 5))
