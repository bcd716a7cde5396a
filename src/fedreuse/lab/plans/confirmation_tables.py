"""The answers to a plan, drawn: claims, seed-level observations, datasets, factorials, targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from fedreuse.core.registry import to_plain
from fedreuse.report.arrivals import COSTS
from fedreuse.report.number_text import interval, number, p_value
from fedreuse.report.observations import Unit, amount_in, unit_of
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.lab.plans.claims import Contrast
    from fedreuse.lab.plans.confirmation import ClaimAnswer, Confirmation
    from fedreuse.report.arrivals import TargetAnswer
    from fedreuse.report.observations import Cell
    from fedreuse.report.statistics.contrasts import Assessment

__all__ = [
    "claim_tables",
    "confirmation_plain",
    "confirmation_tables",
    "in_words",
    "medians_table",
    "named",
]

_ARRIVED = (
    "reached: at an evaluation, so that costs are those of evaluated rounds. median: Kaplan-Meier, runs that never "
    "arrive are censored; -: fewer than half arrive"
)


def confirmation_tables(found: Confirmation) -> list[Table]:
    """Every table of a confirmation."""
    return [*claim_tables(found), *(_target(answer, found) for answer in found.targets)]


def claim_tables(found: Confirmation) -> list[Table]:
    """What was claimed, and the observations behind it."""
    unit = unit_of(found.record.current.plan.metric, found.results)
    tables = [_claims(found, unit), _observations(found, unit), _differences(found, unit)]
    if found.summaries:
        tables.append(_over_datasets(found, unit))
    return [*tables, _factorial(found, unit)] if found.factorials else tables


def medians_table(found: Confirmation, target: float, costs: Sequence[str]) -> Table:
    """What it takes to reach one target: of every variant the medians of several costs, each with its interval."""
    answers = [answer for cost in costs for answer in found.targets if (answer.target, answer.cost) == (target, cost)]
    rows = tuple(
        (_label(cell, found), f"{one.num_reached} of {one.num_runs}", *(_median(each, cell, found) for each in answers))
        for cell, one in answers[0].cells.items()
    )
    headers = ("variant", "reached", *(_cost(answer, found) for answer in answers))
    return Table(f"To validation score {target:g}: medians (with intervals)", headers, rows, f"{_ARRIVED}.")


def _median(answer: TargetAnswer, cell: Cell, found: Confirmation) -> str:
    unit, one = unit_of(answer.cost, found.results), answer.cells[cell]
    if one.median is None:
        return "-"
    shown = f"{number(one.median, unit)} ({interval(one.median_interval, unit)})"
    return shown.replace(".00", "") if answer.cost == "rounds" else shown


def _cost(answer: TargetAnswer, found: Confirmation) -> str:
    """What is counted, with its unit and its boundary."""
    plan = found.record.current.plan
    which = f" ({plan.boundary}, {plan.direction})" if answer.cost == "bytes" else ""
    return (answer.cost if answer.cost == "rounds" else unit_of(answer.cost, found.results)[0]) + which


def in_words(found: Confirmation) -> list[str]:
    """What a reader must know of the plan before the tables."""
    entry, first = found.record.current, found.record.entries[0]
    lines = [f"plan {entry.digest[:12]}, registered {entry.registered}; all runs by {found.code}"]
    if first.complete_before:
        lines.append(
            f"Note: {len(first.complete_before)} runs were complete before the first plan was registered, so that it "
            "was not made before the results."
        )
    late = [_title(answer.claim.contrast, found) for answer in found.answers if not answer.is_first]
    if late:
        lines.append(f"Not in the first plan ({first.digest[:12]}): {'; '.join(dict.fromkeys(late))}.")
    apart = [answer for answer in found.answers if answer.differing]
    return [
        *lines,
        *(f"Note: the pairs of '{named(one, found)}' differ in {', '.join(one.differing)}." for one in apart),
    ]


def _claims(found: Confirmation, unit: Unit) -> Table:
    plan, count = found.record.current.plan, len(found.answers)
    confidence = f"{100 * (1 - plan.alpha):g} %"
    rows = tuple(
        (
            named(answer, found) + ("" if answer.is_first else " *"), number(answer.said.mean, unit),
            interval(answer.said.t, unit), interval(answer.said.bca, unit), p_value(answer.said.t_p),
            f"{p_value(answer.said.sign_flip_p)} ({p_value(answer.said.smallest_sign_flip)})",
            p_value(answer.adjusted_p), number(answer.said.detectable, unit), answer.verdict,
        )
        for answer in found.answers
    )  # fmt: skip
    headers = (
        "A - B: claim", "mean", f"t {confidence}", f"BCa {confidence}", "p (t)", "p (flips)\n(smallest)",
        f"p, {plan.correction}", f"could find\n({plan.power:.0%})", "verdict",
    )  # fmt: skip
    by = "paired t (TOST for equivalence)" if plan.decide == "t" else "sign flips"
    legend = (
        f"Decided by {by} at alpha = {plan.alpha:g} over {count} claim{'s' if count > 1 else ''}, correction "
        f"{plan.correction}. not shown: these seeds do not show it, which is not the opposite.\n"
        "could find: the difference (equivalence: the margin of equal variants; non-inferiority: how far on the worse "
        "side) that would have been found with that probability, given the spread over these seeds.\n"
        "smallest: the least p that so many seeds can give. BCa decides nothing: with few seeds it is too short."
    )
    if any(not answer.is_first for answer in found.answers):
        legend += "\n* not in the first plan."
    return Table(f"Claims ({unit[0]}; {_num_seeds(found)} seeds)", headers, rows, legend)


def _observations(found: Confirmation, unit: Unit) -> Table:
    seeds = _seeds(found)
    rows = tuple(
        (_label(cell, found), *(number(by_seed.get(seed), unit) for seed in seeds))
        for cell, by_seed in found.values.items()
    )
    return Table(f"Observations by seed ({unit[0]})", ("variant", *(str(seed) for seed in seeds)), rows)


def _differences(found: Confirmation, unit: Unit) -> Table:
    seeds = _seeds(found)
    rows = tuple(
        (named(answer, found), *(number(answer.said.by_seed.get(seed), unit) for seed in seeds))
        for answer in found.answers
    )
    return Table(f"Differences by seed ({unit[0]})", ("A - B", *(str(seed) for seed in seeds)), rows)


def _over_datasets(found: Confirmation, unit: Unit) -> Table:
    shown = {contrast.title: _title(contrast, found) for contrast in found.record.current.plan.contrasts}
    rows = tuple(
        (shown[title], str(one.num_datasets), number(one.mean, unit), interval(one.interval, unit),
         number(one.between_sd, unit), f"{one.heterogeneity:.0%}")
        for title, one in found.summaries.items()
    )  # fmt: skip
    headers = ("A - B", "datasets", "mean", "interval", "sd between\ndatasets", "I squared")
    legend = (
        "Random effects (Paule-Mandel), Student's t on datasets - 1 degrees of freedom: what new datasets may show."
    )
    return Table(f"Over datasets ({unit[0]})", headers, rows, legend)


def _factorial(found: Confirmation, unit: Unit) -> Table:
    rows = []
    for answer in found.factorials:
        first, second = answer.axes
        names = {"first": first, "second": second, "interaction": f"{first} x {second}"}
        at = f" on {answer.where}" if answer.where else ""
        rows += [(f"{names[name]}{at}", *_effect(said, unit)) for name, said in answer.effects.items()]
    headers = ("effect", "mean", "t interval", "BCa interval", "p (t)", "could find")
    legend = (
        "Effect: second label minus first, the mean over the other axis. Interaction: by how much the effect of the "
        "first axis is larger at the second label of the other. Not corrected for several effects."
    )
    return Table(f"2 x 2 factorials ({unit[0]})", headers, tuple(rows), legend)


def _effect(said: Assessment, unit: Unit) -> tuple[str, ...]:
    shown = (number(said.mean, unit), interval(said.t, unit), interval(said.bca, unit), p_value(said.t_p))
    return (*shown, number(said.detectable, unit))


def _target(answer: TargetAnswer, found: Confirmation) -> Table:
    unit = unit_of(answer.cost, found.results)
    rows = [
        (_label(cell, found), f"{one.num_reached} of {one.num_runs}", number(one.median, unit),
         interval(one.median_interval, unit), number(one.restricted_mean, unit),
         interval(one.restricted_interval, unit), number(one.horizon, unit))
        for cell, one in answer.cells.items()
    ]  # fmt: skip
    rows += [
        (f"{claim.contrast.of} - {claim.contrast.against}{f' ({claim.where})' if claim.where else ''}", "", "", "",
         number(said.mean, unit), interval(said.t, unit), "")
        for claim, said in answer.differences
    ]  # fmt: skip
    headers = ("variant", "reached", "median", "interval", "restricted\nmean", "t interval", "horizon")
    legend = (
        f"{_ARRIVED}. restricted mean: of the cost cut off at the horizon, the least that a run without arrival spent; "
        "differences are paired by seed."
    )
    title = f"To validation score {answer.target:g}: {_cost(answer, found)}"
    return Table(title, headers, tuple(rows), legend if answer.cost == COSTS[-1] else "")


def confirmation_plain(found: Confirmation) -> dict[str, Any]:
    """A confirmation as JSON holds it: numbers as they are, ends of intervals that are infinite as null."""
    entry = found.record.current
    plain: dict[str, Any] = _finite(
        {
            "digest": entry.digest,
            "registered": entry.registered,
            "plan": to_plain(entry.plan),
            "plans": [one.digest for one in found.record.entries],
            "complete_before": list(found.record.entries[0].complete_before),
            "code": found.code,
            "observations": [{"labels": dict(cell), "by_seed": dict(runs)} for cell, runs in found.values.items()],
            "claims": [
                {
                    "contrast": asdict(answer.claim.contrast),
                    "block": dict(answer.claim.block),
                    **asdict(answer.said),
                    "adjusted_p": answer.adjusted_p,
                    "verdict": answer.verdict,
                    "in_first_plan": answer.is_first,
                    "differing": list(answer.differing),
                }
                for answer in found.answers
            ],
            "over_datasets": {title: asdict(one) for title, one in found.summaries.items()},
            "factorials": [asdict(answer) for answer in found.factorials],
            "targets": [
                {
                    "target": answer.target,
                    "cost": answer.cost,
                    "variants": [{"labels": dict(cell), **asdict(one)} for cell, one in answer.cells.items()],
                    "differences": [
                        {"contrast": asdict(claim.contrast), "block": dict(claim.block), **asdict(said)}
                        for claim, said in answer.differences
                    ],
                }
                for answer in found.targets
            ],
        }
    )
    return plain


def _finite(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {str(key): _finite(inner) for key, inner in node.items()}
    if isinstance(node, list | tuple):
        return [_finite(inner) for inner in node]
    return None if isinstance(node, float) and not isfinite(node) else node


def named(answer: ClaimAnswer, found: Confirmation) -> str:
    """A contrast with its margin in the unit of the tables, and the block it was answered in."""
    title = _title(answer.claim.contrast, found)
    return f"{title} ({answer.claim.where})" if answer.claim.where else title


def _title(contrast: Contrast, found: Confirmation) -> str:
    metric = found.record.current.plan.metric
    return contrast.title_with(amount_in(unit_of(metric, found.results), metric, contrast.margin))


def _label(cell: Cell, found: Confirmation) -> str:
    order = list(found.results[0].labels)
    return ", ".join(label for _, label in sorted(cell, key=lambda pair: order.index(pair[0])))


def _seeds(found: Confirmation) -> Sequence[int]:
    return sorted({seed for by_seed in found.values.values() for seed in by_seed})


def _num_seeds(found: Confirmation) -> int:
    return len(_seeds(found))
