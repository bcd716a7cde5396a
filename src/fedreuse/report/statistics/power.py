"""What so many seeds can show: the difference that would be found, and the seeds that a claim needs."""

from __future__ import annotations

from math import ceil, log2, sqrt

from scipy import special, stats

from fedreuse.report.statistics.hypotheses import Hypothesis

__all__ = ["detectable", "seeds_for_sign_flips", "seeds_for_t", "smallest_margin"]

_MOST_SEEDS = 10_000


def detectable(sd: float, num_pairs: int, hypothesis: Hypothesis, alpha: float = 0.05, power: float = 0.8) -> float:
    """What a paired t-test on so many seeds finds with the given probability, in the unit of the differences.

    Args:
        sd: Standard deviation of the paired differences, as observed or as expected.
        num_pairs: Number of seeds, at least 2.
        hypothesis: What is to be shown.
        alpha: Level of the test; of several, that of the first step of the correction.
        power: Probability in (0, 1) of finding it.

    Returns:
        For superiority: the size of the true difference. For non-inferiority: how far the true difference may lie on
        the worse side (negative: it must be better by so much). For equivalence: the margin that two equal variants
        would be shown to keep (from above: the two one-sided tests are taken to fail separately).

    Example:
        >>> round(detectable(0.01, 5, Hypothesis()), 4)  # 1.68 standard deviations
        0.0168

    """
    is_equivalence = hypothesis.test == "equivalence"
    effect = _effect(num_pairs, hypothesis.num_tails, alpha, 1 - (1 - power) / 2 if is_equivalence else power)
    if hypothesis.test == "superiority":
        return hypothesis.margin + effect * sd
    return effect * sd if is_equivalence else hypothesis.margin - effect * sd


def _effect(num_pairs: int, num_tails: int, alpha: float, power: float) -> float:
    """The difference in standard deviations that has this power, the tail on the wrong side left out.

    Not by `TTestPower.solve_power` of statsmodels: it stops early for a small alpha (ten pairs at 0.0005: power 0.69
    where 0.8 was asked).
    """
    critical = stats.t.isf(alpha / num_tails, num_pairs - 1)
    return float(special.nctdtrinc(num_pairs - 1, 1 - power, critical)) / sqrt(num_pairs)


def smallest_margin(sd: float, num_pairs: int, alpha: float = 0.05) -> float:
    """The margin that one-sided t-tests can show at best: when the observed difference is zero exactly.

    Example:
        >>> round(smallest_margin(0.01, 5), 4)  # 2.132 standard errors
        0.0095

    """
    return float(stats.t.ppf(1 - alpha, num_pairs - 1)) * sd / sqrt(num_pairs)


def seeds_for_t(sd: float, margin: float, alpha: float = 0.05) -> int:
    """The fewest seeds with which a margin can be shown at all, if the differences spread like `sd`.

    Example:
        >>> seeds_for_t(0.01, 0.01)
        5

    """
    enough = (number for number in range(2, _MOST_SEEDS) if smallest_margin(sd, number, alpha) < margin)
    return next(enough, _MOST_SEEDS)


def seeds_for_sign_flips(hypothesis: Hypothesis, alpha: float = 0.05) -> int:
    """The fewest seeds with which flips of signs can reach alpha.

    Example:
        >>> seeds_for_sign_flips(Hypothesis())
        6

    """
    return ceil(log2(hypothesis.num_tails / alpha))
