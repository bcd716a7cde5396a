"""Families of claims: the plan before the first result decides; what an amendment adds after it is exploratory.

The decisive plan is tested on its own runs, with its own rules and its own number of claims, whatever is amended later,
so that dropping claims or adding seeds after a look gains nothing. Declared looks share alpha: each is tested with its
part of it, and the probability of a false claim at any look is at most the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.lab.plans.correction import adjusted
from fedreuse.lab.plans.record import rules_of
from fedreuse.report.statistics.contrasts import Assessment, assess, paired

if TYPE_CHECKING:
    from fedreuse.lab.plans.claims import Axes, Claim
    from fedreuse.lab.plans.observations import Cell
    from fedreuse.lab.plans.plan import Plan
    from fedreuse.lab.plans.record import Entry, PlanRecord

__all__ = ["Answered", "Observed", "answer_families"]

_SEED_AXIS = "seed"
_EQUAL = "no test: all differences are equal"


@dataclass(frozen=True)
class Observed:
    """Observations of a study.

    Attributes:
        values: Function that returns the metric of a plan, by cell and seed.
        seeds: The seed of every run by its labels.
        assess: Function that computes the statistics of differences.
    """

    values: Callable[[Plan], Mapping[Cell, Mapping[int, float]]]
    seeds: Mapping[frozenset[tuple[str, str]], int]
    assess: Callable[..., Assessment] = assess

    def seeds_of(self, entry: Entry) -> list[int]:
        """Return the seeds of a plan in the order of its runs."""
        return list(dict.fromkeys(self.seeds[frozenset(run["labels"].items())] for run in entry.runs))


@dataclass(frozen=True)
class Answered:
    """One claim with its statistics, adjusted p-value and verdict.

    Attributes:
        claim: The claim.
        assessment: Its statistics.
        adjusted_p: The p-value, adjusted for the other claims of its family.
        verdict: `shown`, `not shown`, or why there is no test; claims of a late amendment are `exploratory`.
        entry: The plan that it belongs to.
        is_late: True if the claim was added or changed after the first result.
    """

    claim: Claim
    assessment: Assessment
    adjusted_p: float | None
    verdict: str
    entry: Entry
    is_late: bool = False


def answer_families(record: PlanRecord, observed: Observed) -> list[Answered]:
    """Test the claims of the decisive plan, then those that a late amendment added or changed."""
    decisive = record.decisive
    planned = [] if decisive is None else _test_planned(record, decisive, observed)
    return [*planned, *(_test_late(record, planned, observed) if record.is_amended_late else ())]


def _test_planned(record: PlanRecord, entry: Entry, observed: Observed) -> list[Answered]:
    """Test a plan at each of its looks; a claim that an earlier look has shown stays shown."""
    plan, claims = entry.plan, entry.plan.claims(_axes(entry))
    seeds = _in_order(record, entry, observed)
    looks = plan.looks_until(len(seeds))
    found: list[Answered] = []
    for look, alpha in looks.items():
        assessments = _assess(claims, observed, plan, seeds[:look], alpha)
        p_values = adjusted([_p(one, plan) for one in assessments], plan.correction)
        at = f" at the look with {look} seeds" if len(plan.looks) > 1 else ""
        tested = [
            Answered(claim, one, p, _verdict(p, alpha) + (at if p is not None and p <= alpha else ""), entry)
            for claim, one, p in zip(claims, assessments, p_values, strict=True)
        ]
        earlier = found or tested
        found = [old if old.verdict.startswith("shown") else new for old, new in zip(earlier, tested, strict=True)]
    return found


def _test_late(record: PlanRecord, planned: Sequence[Answered], observed: Observed) -> list[Answered]:
    """Test the claims of the last plan that the decisive one does not answer; the correction counts both families."""
    entry, decisive = record.current, record.decisive
    plan, seeds = entry.plan, observed.seeds_of(entry)
    is_same = (
        decisive is not None
        and rules_of(decisive.plan) == rules_of(plan)
        and set(observed.seeds_of(decisive)) == set(seeds)
    )
    answered = [one.claim for one in planned] if is_same else []
    claims = [claim for claim in plan.claims(_axes(entry)) if claim not in answered]
    assessments = _assess(claims, observed, plan, seeds, plan.alpha, len(planned) + len(claims))
    first = [_p(one.assessment, one.entry.plan) for one in planned]
    p_values = adjusted([*first, *(_p(one, plan) for one in assessments)], plan.correction)[len(planned) :]
    return [
        Answered(claim, one, p, _exploratory(p, plan.alpha), entry, is_late=True)
        for claim, one, p in zip(claims, assessments, p_values, strict=True)
    ]


def _assess(
    claims: Sequence[Claim],
    observed: Observed,
    plan: Plan,
    seeds: Sequence[int],
    alpha: float,
    num_claims: int | None = None,
) -> list[Assessment]:
    num_tests = 1 if plan.correction == "none" else num_claims or len(claims)
    values, assessments = observed.values(plan), []
    for claim in claims:
        of, against = (values[frozenset(cell.items())] for cell in claim.cells)
        chosen = paired(*({seed: value[seed] for seed in seeds if seed in value} for value in (of, against)))
        assessments.append(
            observed.assess(chosen, claim.contrast.hypothesis, alpha=alpha, power=plan.power, num_tests=num_tests)
        )
    return assessments


def _in_order(record: PlanRecord, entry: Entry, observed: Observed) -> list[int]:
    """Return the seeds of a plan in the order in which they were registered, which decides the seeds of each look."""
    until = record.entries[: record.entries.index(entry) + 1]
    wanted = set(observed.seeds_of(entry))
    seeds = dict.fromkeys(seed for each in until for seed in observed.seeds_of(each))
    return [seed for seed in seeds if seed in wanted]


def _axes(entry: Entry) -> Axes:
    """Return the labels of every axis but the seed, in the order of the runs."""
    axes: dict[str, list[str]] = {}
    for run in entry.runs:
        for axis, label in run["labels"].items():
            if axis != _SEED_AXIS and label not in axes.setdefault(axis, []):
                axes[axis].append(label)
    return axes


def _p(found: Assessment, plan: Plan) -> float | None:
    return found.t_p if plan.decide == "t" else found.sign_flip_p


def _verdict(p: float | None, alpha: float) -> str:
    if p is None:
        return _EQUAL
    return "shown" if p <= alpha else "not shown"


def _exploratory(p: float | None, alpha: float) -> str:
    return _EQUAL if p is None else f"exploratory: p {'<=' if p <= alpha else '>'} {alpha:g}"
