"""Paired differences by seed between the variants of a study without a plan: descriptive, no decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.report.results import compared_alike
from fedreuse.report.statistics.contrasts import Assessment, assess
from fedreuse.report.tables import Table
from fedreuse.report.units import interval, number, p_value, unit_of
from fedreuse.report.variants import by_variant, reference_of

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["Pairs", "paired_differences", "paired_plain", "paired_table", "true_pairs"]

Pairs = dict[str, tuple[str, Assessment]]
"""By variant: the baseline, and the assessment of the differences over their common seeds."""


def paired_differences(results: Sequence[Result], score: str = "test", reference: str | None = None) -> Pairs:
    """Return every variant minus the reference on the same data and network, over the seeds that both have.

    Only true pairs count: runs of one seed that share data, partition, cohorts and initial model. Variants with fewer
    than two pairs are left out.

    Args:
        results: Runs; incomplete ones are left out.
        score: `test` or `validation`.
        reference: Name of the reference; None, or a name on other data: the first dense variant, else the first.
    """
    pairs: Pairs = {}
    groups: dict[tuple[str, str], list[Variant]] = {}
    variants = by_variant(results)
    for variant in variants:
        groups.setdefault((variant.results[0].dataset, variant.results[0].network), []).append(variant)
    for variant in variants:
        baseline = reference_of(groups[variant.results[0].dataset, variant.results[0].network], reference)
        if baseline is None:
            continue
        by_seed = {} if baseline is variant else true_pairs(variant, baseline, score)
        if len(by_seed) > 1:
            pairs[variant.name] = baseline.name, assess(by_seed)
    return pairs


def true_pairs(variant: Variant, baseline: Variant, score: str) -> dict[int, float]:
    """Return score differences by seed where both runs share data, partition, cohorts and initial model."""
    others = {result.seed: result for result in baseline.results}
    pairs = {}
    for result in variant.results:
        other = others.get(result.seed)
        if other is None or compared_alike([result, other]):
            continue
        mine, theirs = getattr(result, f"{score}_score"), getattr(other, f"{score}_score")
        if mine is not None and theirs is not None:
            pairs[result.seed] = mine - theirs
    return pairs


def paired_table(results: Sequence[Result], score: str = "test", reference: str | None = None) -> Table | None:
    """Return the differences as a table; None if there are not two seeds to pair."""
    pairs = paired_differences(results, score, reference)
    if not pairs:
        return None
    unit = unit_of(score, results)
    rows = tuple(
        (
            name, against, str(len(pair.by_seed)), number(pair.mean, unit), interval(pair.t, unit),
            interval(pair.bca, unit), f"{p_value(pair.sign_flip_p)} ({p_value(pair.smallest_sign_flip)})",
            number(pair.detectable, unit), " ".join(number(value, unit) for value in pair.by_seed.values()),
        )
        for name, (against, pair) in pairs.items()
    )  # fmt: skip
    headers = ("variant", "minus", "seeds", "mean", "t 95 %", "BCa 95 %", "p (sign flips)\n(smallest)",
               "detectable\n(80 % power)", "by seed")  # fmt: skip
    legend = (
        "Pairs share seed, data, partition, cohorts and initial model; other runs are not paired. Without a plan "
        "nothing is decided here: `fedreuse lab confirm` tests claims that were registered before the results.\n"
        "smallest: smallest p-value possible with this many seeds. detectable: the difference that a t-test at 5 % "
        "detects with this power, given the spread over these seeds."
    )
    return Table(f"Paired differences by seed ({unit[0]})", headers, rows, legend)


def paired_plain(results: Sequence[Result], score: str = "test") -> list[dict[str, Any]]:
    """Return the differences as JSON data."""
    return [
        {
            "variant": name,
            "minus": against,
            "score": score,
            "by_seed": dict(pair.by_seed),
            "mean": pair.mean,
            "sd": pair.sd,
            "t_95": pair.t,
            "bca_95": pair.bca,
            "t_p": pair.t_p,
            "sign_flip_p": pair.sign_flip_p,
            "smallest_sign_flip": pair.smallest_sign_flip,
            "detectable": pair.detectable,
        }
        for name, (against, pair) in paired_differences(results, score).items()
    ]
