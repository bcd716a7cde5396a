"""Differences by seed between the variants of a study that had no plan: shown, and nothing decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.report.number_text import interval, number, p_value
from fedreuse.report.observations import unit_of
from fedreuse.report.results import compared_alike
from fedreuse.report.statistics.contrasts import Assessment, assess
from fedreuse.report.tables import Table
from fedreuse.report.variants import by_variant

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.report.variants import Variant

__all__ = ["Pairs", "paired_differences", "paired_plain", "paired_table", "true_pairs"]

Pairs = dict[str, tuple[str, Assessment]]
"""By variant: against which other, and what the differences of their common seeds say."""


def paired_differences(results: Sequence[Result], score: str = "test") -> Pairs:
    """Every variant minus the first one on the same data and network, over the seeds that both have.

    Only true pairs count: runs of one seed that share data, partition, cohorts and initial model. Variants with fewer
    than two of them are left out.
    """
    found: Pairs = {}
    first: dict[tuple[str, str], Variant] = {}
    for variant in by_variant(results):
        one = variant.results[0]
        baseline = first.setdefault((one.dataset, one.network), variant)
        by_seed = {} if baseline is variant else true_pairs(variant, baseline, score)
        if len(by_seed) > 1:
            found[variant.name] = baseline.name, assess(by_seed)
    return found


def true_pairs(variant: Variant, baseline: Variant, score: str) -> dict[int, float]:
    """By seed, a score minus the baseline's, where the two runs share data, partition, cohorts and initial model."""
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


def paired_table(results: Sequence[Result], score: str = "test") -> Table | None:
    """The differences as a table; None if there are no two seeds to pair."""
    pairs = paired_differences(results, score)
    if not pairs:
        return None
    unit = unit_of(score, results)
    rows = tuple(
        (
            name, against, str(len(said.by_seed)), number(said.mean, unit), interval(said.t, unit),
            interval(said.bca, unit), f"{p_value(said.sign_flip_p)} ({p_value(said.smallest_sign_flip)})",
            number(said.detectable, unit), " ".join(number(one, unit) for one in said.by_seed.values()),
        )
        for name, (against, said) in pairs.items()
    )  # fmt: skip
    headers = ("variant", "minus", "seeds", "mean", "t 95 %", "BCa 95 %", "p (sign flips)\n(smallest)",
               "could find\n(80%)", "by seed")  # fmt: skip
    legend = (
        "Runs of one seed share data, partition, cohorts and initial model; others are not paired. No plan, so nothing "
        "is decided here: `fedreuse lab confirm` tests what a plan asked before the results.\n"
        "smallest: the least p that so many seeds can give. could find: the difference that a t-test at 5 % finds with "
        "that probability, given the spread over these seeds."
    )
    return Table(f"Paired differences by seed ({unit[0]})", headers, rows, legend)


def paired_plain(results: Sequence[Result], score: str = "test") -> list[dict[str, Any]]:
    """The differences as JSON holds them."""
    return [
        {
            "variant": name,
            "minus": against,
            "score": score,
            "by_seed": dict(said.by_seed),
            "mean": said.mean,
            "sd": said.sd,
            "t_95": said.t,
            "bca_95": said.bca,
            "t_p": said.t_p,
            "sign_flip_p": said.sign_flip_p,
            "smallest_sign_flip": said.smallest_sign_flip,
            "detectable": said.detectable,
        }
        for name, (against, said) in paired_differences(results, score).items()
    ]
