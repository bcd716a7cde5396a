"""Tables of a confirmation: claims, observations by seed, datasets, factorials, targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from fedreuse.core.registry import to_plain
from fedreuse.report.tables import Table
from fedreuse.report.target_costs import COSTS
from fedreuse.report.units import Unit, amount_in, interval, number, p_value, unit_of

if TYPE_CHECKING:
    from fedreuse.lab.plans.claims import Contrast
    from fedreuse.lab.plans.confirmation import ClaimAnswer, Confirmation
    from fedreuse.lab.plans.observations import Cell
    from fedreuse.lab.plans.targets import TargetAnswer

__all__ = [
    "claim_tables",
    "confirmation_plain",
    "confirmation_tables",
    "medians_table",
    "named",
    "plan_notes",
]

_ARRIVED = (
    "reached: at an evaluation, so costs are those of evaluated rounds. median: Kaplan-Meier, runs that do not reach "
    "the target are censored; -: fewer than half reach it"
)


def confirmation_tables(found: Confirmation) -> list[Table]:
    """Return every table of a confirmation."""
    return [*claim_tables(found), *(_target(answer, found) for answer in found.targets)]


def claim_tables(found: Confirmation) -> list[Table]:
    """Return the claims and the observations behind them."""
    unit = unit_of(found.record.current.plan.metric, found.results)
    families = [answers for answers in (found.planned, found.late) if answers]
    tables = [_claims(found, answers) for answers in families]
    tables += [_observations(found, unit), *(_differences(found, answers) for answers in families)]
    if found.summaries:
        tables.append(_over_datasets(found, unit))
    return [*tables, _factorial(found, unit)] if found.factorials else tables


def medians_table(found: Confirmation, target: float, costs: Sequence[str]) -> Table:
    """Return the median costs of every variant to one target, each with its interval."""
    answers = [answer for cost in costs for answer in found.targets if (answer.target, answer.cost) == (target, cost)]
    rows = tuple(
        (
            _label(cell, found),
            f"{first.num_reached} of {first.num_runs}",
            *(_median(answer, cell, found) for answer in answers),
        )
        for cell, first in answers[0].cells.items()
    )
    headers = ("variant", "reached", *(_cost(answer, found) for answer in answers))
    return Table(f"To validation score {target:g}: medians (with intervals)", headers, rows, f"{_ARRIVED}.")


def _median(answer: TargetAnswer, cell: Cell, found: Confirmation) -> str:
    unit, costs = unit_of(answer.cost, found.results), answer.cells[cell]
    if costs.median is None:
        return "-"
    shown = f"{number(costs.median, unit)} ({interval(costs.median_interval, unit)})"
    return shown.replace(".00", "") if answer.cost == "rounds" else shown


def _cost(answer: TargetAnswer, found: Confirmation) -> str:
    """Return the unit of a cost, with the boundary for bytes."""
    plan = found.record.current.plan
    which = f" ({plan.boundary}, {plan.direction})" if answer.cost == "bytes" else ""
    return (answer.cost if answer.cost == "rounds" else unit_of(answer.cost, found.results)[0]) + which


def plan_notes(found: Confirmation) -> list[str]:
    """Return sentences about the plan and its registration, to be read before the tables."""
    record = found.record
    entry, first = record.decisive or record.current, record.entries[0]
    lines = [f"plan {entry.digest[:12]}, registered {entry.registered}; all runs by {found.code}"]
    if first.complete_before:
        lines.append(
            f"Note: {len(first.complete_before)} runs were complete before the first plan was registered, so it was "
            "not registered before the results."
        )
    early = [_title(answer.claim.contrast, found) for answer in found.planned if not answer.is_first]
    if early:
        lines.append(f"Not in the first plan ({first.digest[:12]}): {'; '.join(dict.fromkeys(early))}.")
    if record.is_amended_late:
        lines.append(_amendment(found))
    apart = [answer for answer in found.answers if answer.differing]
    return [
        *lines,
        *(f"Note: the pairs of '{named(answer, found)}' differ in {', '.join(answer.differing)}." for answer in apart),
    ]


def _amendment(found: Confirmation) -> str:
    """Return a sentence about an amendment after the first result, with both dates and everything that it touches."""
    last, decisive = found.record.current, found.record.decisive
    seen = len(last.complete_before) + len(last.begun_before)
    first = "No plan was registered before the results" if decisive is None else f"Planned {decisive.registered}"
    touched = "; ".join(dict.fromkeys(_title(answer.claim.contrast, found) for answer in found.late)) or "no claim"
    kept = [] if decisive is None else [one for one in decisive.plan.contrasts if one not in last.plan.contrasts]
    dropped = f" Dropped by it, and answered nevertheless: {'; '.join(one.title for one in kept)}." if kept else ""
    return (
        f"{first}; amended {last.registered} ({last.digest[:12]}), when {seen} runs had results. Exploratory (*): "
        f"{touched}.{dropped} Factorials and costs to targets follow the amended plan."
    )


def _claims(found: Confirmation, answers: Sequence[ClaimAnswer]) -> Table:
    entry, is_late = answers[0].entry, answers[0].is_late
    plan, count = entry.plan, len(found.answers) if is_late else len(answers)
    unit = unit_of(plan.metric, found.results)
    confidence = f"{100 * (1 - plan.alpha):g} %"
    rows = tuple(
        (
            named(answer, found) + ("" if answer.is_first else " *"), number(pairs.mean, unit),
            interval(pairs.t, unit), interval(pairs.bca, unit), p_value(pairs.t_p),
            f"{p_value(pairs.sign_flip_p)} ({p_value(pairs.smallest_sign_flip)})",
            p_value(answer.adjusted_p), number(pairs.detectable, unit), answer.verdict,
        )
        for answer in answers
        for pairs in [answer.assessment]
    )  # fmt: skip
    headers = (
        "A - B: claim", "mean", f"t {confidence}", f"BCa {confidence}", "p (t)", "p (flips)\n(smallest)",
        f"p, {plan.correction}", f"detectable\n({100 * plan.power:g} % power)", "verdict",
    )  # fmt: skip
    by = "paired t (TOST for equivalence)" if plan.decide == "t" else "sign flips"
    legend = (
        f"Decided by {by} at alpha = {plan.alpha:g} over {count} claim{'s' if count > 1 else ''}, correction "
        f"{plan.correction}. not shown: these seeds do not show the claim, which does not mean that they refute it.\n"
        "detectable: the difference (equivalence: the margin for equal variants; non-inferiority: the distance on the "
        "worse side) that is detected with this power, given the spread over these seeds.\n"
        "smallest: smallest p-value possible with this many seeds. BCa intervals are not used for decisions: with few "
        "seeds they are too short."
    )
    if plan.looks:
        levels = ", ".join(f"{alpha:.4g} with {look} seeds" for look, alpha in plan.looks_until(plan.looks[-1]).items())
        legend += f"\nLooks share alpha: {levels}; intervals are those of the look."
    if is_late:
        legend += f"\n* added or changed {entry.registered}, after results were known: exploratory."
    elif any(not answer.is_first for answer in answers):
        legend += "\n* not in the first plan."
    title = "Exploratory claims" if is_late else "Claims"
    return Table(f"{title} ({unit[0]}; {len(_seeds_of(answers))} seeds)", headers, rows, legend)


def _observations(found: Confirmation, unit: Unit) -> Table:
    seeds = _seeds(found)
    rows = tuple(
        (_label(cell, found), *(number(by_seed.get(seed), unit) for seed in seeds))
        for cell, by_seed in found.values.items()
    )
    return Table(f"Observations by seed ({unit[0]})", ("variant", *(str(seed) for seed in seeds)), rows)


def _differences(found: Confirmation, answers: Sequence[ClaimAnswer]) -> Table:
    seeds, unit = _seeds_of(answers), unit_of(answers[0].entry.plan.metric, found.results)
    rows = tuple(
        (named(answer, found), *(number(answer.assessment.by_seed.get(seed), unit) for seed in seeds))
        for answer in answers
    )
    title = "Exploratory differences" if answers[0].is_late else "Differences"
    return Table(f"{title} by seed ({unit[0]})", ("A - B", *(str(seed) for seed in seeds)), rows)


def _over_datasets(found: Confirmation, unit: Unit) -> Table:
    shown = {answer.claim.contrast.title: _title(answer.claim.contrast, found) for answer in found.planned}
    rows = tuple(
        (shown[title], str(over.num_datasets), number(over.mean, unit), interval(over.interval, unit),
         number(over.between_sd, unit), f"{over.heterogeneity:.0%}")
        for title, over in found.summaries.items()
    )  # fmt: skip
    headers = ("A - B", "datasets", "mean", "interval", "sd between\ndatasets", "I squared")
    legend = (
        "Random effects (Paule-Mandel), Student's t on datasets - 1 degrees of freedom: the effect on new datasets."
    )
    return Table(f"Over datasets ({unit[0]})", headers, rows, legend)


def _factorial(found: Confirmation, unit: Unit) -> Table:
    rows = []
    for answer in found.factorials:
        first, second = answer.axes
        names = {"first": first, "second": second, "interaction": f"{first} x {second}"}
        at = f" on {answer.where}" if answer.where else ""
        rows += [
            (f"{names[name]}{at}", number(effect.mean, unit), interval(effect.t, unit), interval(effect.bca, unit),
             p_value(effect.t_p), number(effect.detectable, unit))
            for name, effect in answer.effects.items()
        ]  # fmt: skip
    headers = ("effect", "mean", "t interval", "BCa interval", "p (t)", "detectable")
    legend = (
        "Effect: second label minus first, mean over the other axis. Interaction: effect of the first axis at the "
        "second label of the other minus that at the first. Not corrected for multiple effects."
    )
    return Table(f"2 x 2 factorials ({unit[0]})", headers, tuple(rows), legend)


def _target(answer: TargetAnswer, found: Confirmation) -> Table:
    unit = unit_of(answer.cost, found.results)
    rows = [
        (_label(cell, found), f"{costs.num_reached} of {costs.num_runs}", number(costs.median, unit),
         interval(costs.median_interval, unit), number(costs.restricted_mean, unit),
         interval(costs.restricted_interval, unit), number(costs.horizon, unit))
        for cell, costs in answer.cells.items()
    ]  # fmt: skip
    rows += [
        (f"{claim.contrast.of} - {claim.contrast.against}{f' ({claim.where})' if claim.where else ''}", "", "", "",
         number(pairs.mean, unit), interval(pairs.t, unit), "")
        for claim, pairs in answer.differences
    ]  # fmt: skip
    headers = ("variant", "reached", "median", "interval", "restricted\nmean", "t interval", "horizon")
    legend = (
        f"{_ARRIVED}. restricted mean: of the cost cut off at the horizon, the smallest cost of a run that misses the "
        "target; differences are paired by seed."
    )
    title = f"To validation score {answer.target:g}: {_cost(answer, found)}"
    return Table(title, headers, tuple(rows), legend if answer.cost == COSTS[-1] else "")


def confirmation_plain(found: Confirmation) -> dict[str, Any]:
    """Return a confirmation as JSON data; infinite ends of intervals become null."""
    entry = found.record.current
    plain: dict[str, Any] = _finite(
        {
            "digest": entry.digest,
            "registered": entry.registered,
            "plan": to_plain(entry.plan),
            "plans": [each.digest for each in found.record.entries],
            "complete_before": list(found.record.entries[0].complete_before),
            "code": found.code,
            "observations": [{"labels": dict(cell), "by_seed": dict(runs)} for cell, runs in found.values.items()],
            "claims": [
                {
                    "contrast": asdict(answer.claim.contrast),
                    "block": dict(answer.claim.block),
                    **asdict(answer.assessment),
                    "adjusted_p": answer.adjusted_p,
                    "verdict": answer.verdict,
                    "in_first_plan": answer.is_first,
                    "is_exploratory": answer.is_late,
                    "registered": answer.entry.registered,
                    "differing": list(answer.differing),
                }
                for answer in found.answers
            ],
            "over_datasets": {title: asdict(over) for title, over in found.summaries.items()},
            "factorials": [asdict(answer) for answer in found.factorials],
            "targets": [
                {
                    "target": answer.target,
                    "cost": answer.cost,
                    "variants": [{"labels": dict(cell), **asdict(costs)} for cell, costs in answer.cells.items()],
                    "differences": [
                        {"contrast": asdict(claim.contrast), "block": dict(claim.block), **asdict(pairs)}
                        for claim, pairs in answer.differences
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
    """Return the title of a claim with its margin in the unit of the tables, and its block."""
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


def _seeds_of(answers: Sequence[ClaimAnswer]) -> Sequence[int]:
    return sorted({seed for answer in answers for seed in answer.assessment.by_seed})
