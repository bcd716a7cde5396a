"""Plan of a confirmatory study, fixed before its results: contrasts with margins, metric, correction.

plan:
  metric: test                          # test or validation score; bytes, flops, seconds
  boundary: messages                    # which bytes
  development_seeds: [1, 2, 3]          # settings were chosen with these; the study must not use them
  contrasts:
    - {of: DG-FedReuse, against: Top-K + EF, test: non_inferiority, margin: 0.01, better: higher}
    - {of: DG-FedReuse, against: age only, test: equivalence, margin: 0.01}
  factorials: [[reuse, codec]]          # two axes with two labels each
  looks: [5, 10]                        # optional: seeds may be added after a look
  targets: [0.85]                       # validation scores: bytes, rounds, FLOPs and seconds to reach them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.registry import parse
from fedreuse.lab.plans.claims import Axes, Claim, Contrast, claims_of, require_known
from fedreuse.lab.plans.correction import Correction
from fedreuse.report.statistics.hypotheses import smallest_sign_flip_p
from fedreuse.report.statistics.power import seeds_for_sign_flips, seeds_for_t, smallest_margin

__all__ = ["FEWEST_SEEDS", "Direction", "MetricName", "Plan"]

FEWEST_SEEDS = 5
MetricName = Literal["test", "validation", "bytes", "flops", "seconds", "simulated_seconds"]
Direction = Literal["up", "down", "both"]


def _contrasts(given: object, where: str) -> tuple[Contrast, ...]:
    if not isinstance(given, list) or not given:
        raise ConfigError(
            f"{where}: a list expected, such as [{{of: A, against: B, test: equivalence, margin: 0.01}}], got {given!r}"
        )
    return tuple(parse(Contrast, one, f"{where}[{number}]") for number, one in enumerate(given))


@dataclass(frozen=True)
class Plan:
    """A confirmatory analysis, fixed before the first run.

    Args:
        contrasts: The contrasts to test; all of them share `alpha`.
        metric: The compared metric: `test` or `validation` score (fractions), `bytes` (of `boundary` and `direction`),
            `flops` of the clients, `seconds`.
        boundary: Boundary of the counted bytes, for the metric `bytes` and the costs to a target.
        direction: `up`, `down` or `both`.
        alpha: Probability of any false claim of the plan, in (0, 0.5).
        correction: For several contrasts: `holm`, `bonferroni` or `none`.
        decide: `t` (paired t-test, TOST) or `sign_flip` (exact permutation test).
        sd: Standard deviation of the paired differences in development runs, if known: a margin that cannot be shown
            with it is an error.
        power: Power for which the report gives the detectable difference, in (0, 1).
        development_seeds: Seeds with which settings were chosen.
        factorials: Pairs of axes with two labels each.
        looks: Numbers of seeds after which the plan is tested, ascending; the last one is the size of the whole study.
            Each look has its part of `alpha`, so that seeds may be added after a look. Empty: one test, at the end.
        targets: Validation scores for which the cost to reach them is reported; 0.85 is an accuracy of 85 %.

    Raises:
        ConfigError: A value out of range.

    Example:
        >>> Plan((Contrast("A", "B"),)).check([401, 402, 403, 404, 405], {"method": ["A", "B"]})

    """

    contrasts: tuple[Contrast, ...] = field(metadata={"parse": _contrasts})
    metric: MetricName = "test"
    boundary: str = "messages"
    direction: Direction = "both"
    alpha: float = 0.05
    correction: Correction = "holm"
    decide: Literal["t", "sign_flip"] = "t"
    sd: float | None = None
    power: float = 0.8
    development_seeds: tuple[int, ...] = ()
    factorials: tuple[tuple[str, str], ...] = ()
    targets: tuple[float, ...] = ()
    looks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the ranges, and that all contrasts differ."""
        require(0 < self.alpha < 0.5, "alpha must be in (0, 0.5)", self.alpha)
        require(0 < self.power < 1, "power must be in (0, 1)", self.power)
        require(self.sd is None or self.sd > 0, "sd must be above 0", self.sd)
        is_ascending = all(first < second for first, second in pairwise(self.looks))
        require(
            is_ascending and (not self.looks or self.looks[0] >= FEWEST_SEEDS),
            f"looks are ascending numbers of seeds, each at least {FEWEST_SEEDS}",
            list(self.looks),
        )
        titles = [contrast.title for contrast in self.contrasts]
        twice = {title for title in titles if titles.count(title) > 1}
        require(not twice, "contrasts must differ from each other", sorted(twice))

    def claims(self, axes: Axes) -> list[Claim]:
        """Return every contrast in every block: the tests that the correction counts.

        Args:
            axes: The labels of every axis of the study except the seed.

        Raises:
            ConfigError: The study does not have a label.

        """
        return [claim for contrast in self.contrasts for claim in claims_of(contrast, axes)]

    def check(self, seeds: Sequence[int], axes: Axes, *, is_share: bool = False) -> None:
        """Check that a study with these seeds and axes can test the plan.

        Args:
            seeds: The seeds of the study.
            axes: The labels of every axis of the study except the seed.
            is_share: True for scores between 0 and 1 (accuracy, F1), which bound margins and targets.

        Raises:
            ConfigError: A label is unknown, a margin or target is not in the unit of the score, or seeds are too few
                (the message has the number needed) or were used in development.

        """
        self._check_factorials(axes)
        if is_share:
            self._check_unit()
        claims = self.claims(axes)
        known = sorted(set(self.development_seeds) & set(seeds))
        require(
            not known,
            "development_seeds cannot be used for confirmation; choose others in axes.seed, such as 401 to 405",
            known,
        )
        if len(seeds) < FEWEST_SEEDS:
            raise ConfigError(
                f"a plan needs at least {FEWEST_SEEDS} seeds, got {list(seeds)}; name more in axes.seed (a comparison "
                "without a plan takes any number)"
            )
        if self.looks and len(seeds) not in self.looks:
            raise ConfigError(
                f"the plan is tested with {' or '.join(map(str, self.looks))} seeds (looks), but axes.seed has "
                f"{len(seeds)}; name as many seeds as one of the looks"
            )
        for contrast in self.contrasts:
            self._check_attainable(contrast, len(seeds), len(claims))

    def looks_until(self, num_seeds: int) -> dict[int, float]:
        """Return the level of every test with at most this many seeds, by its number of seeds.

        With `looks` the levels are proportional to the seeds that a look adds, and their sum is `alpha`. The
        probability of a false claim at any look is at most that sum, however the looks depend on each other.
        """
        if not self.looks:
            return {num_seeds: self.alpha}
        before = (0, *self.looks)
        shares = {new: (new - old) / self.looks[-1] for old, new in pairwise(before)}
        return {look: self.alpha * share for look, share in shares.items() if look <= num_seeds}

    def strictest_alpha(self, num_claims: int, num_seeds: int = 0) -> float:
        """Return the level that the smallest of several p-values is compared with, at the last look."""
        alpha = [self.alpha, *self.looks_until(num_seeds).values()][-1]
        return alpha if self.correction == "none" else alpha / num_claims

    def _check_attainable(self, contrast: Contrast, num_seeds: int, num_claims: int) -> None:
        alpha, hypothesis = self.strictest_alpha(num_claims, num_seeds), contrast.hypothesis
        among = f"{num_claims} claims, correction {self.correction}"
        best = smallest_sign_flip_p(num_seeds, hypothesis)
        if self.decide == "sign_flip" and best > alpha:
            raise ConfigError(
                f"'{contrast.title}' cannot be shown by sign flips: {num_seeds} seeds give at best p = "
                f"{best:.4g}, and {alpha:.4g} is needed ({among}). Use {seeds_for_sign_flips(hypothesis, alpha)} "
                "seeds, or decide: t"
            )
        if contrast.test == "superiority" or self.sd is None:
            return
        margin = smallest_margin(self.sd, num_seeds, alpha)
        if margin >= contrast.margin:
            raise ConfigError(
                f"'{contrast.title}' cannot be shown with {num_seeds} seeds if the differences have sd = {self.sd:g}: "
                f"the smallest margin is then {margin:.4g} ({among}). Use "
                f"{seeds_for_t(self.sd, contrast.margin, alpha)} seeds, or a wider margin"
            )

    def _check_unit(self) -> None:
        """Check that margins and targets are shares, not percent."""
        for contrast in self.contrasts if self.metric in ("test", "validation") else ():
            require(
                contrast.margin < 1,
                f"'{contrast.title}': margin is a share: 0.01 is one point, and 1 would be 100 points; it must be "
                "below 1",
                contrast.margin,
            )
        wrong = [target for target in self.targets if not 0 < target <= 1]
        require(
            not wrong,
            "targets are shares: 0.85 is 85 %; they must be above 0 and at most 1",
            wrong,
        )

    def _check_factorials(self, axes: Axes) -> None:
        for pair in self.factorials:
            for name in pair:
                require_known(name, list(axes), "factorials")
                require(len(axes[name]) == 2, f"factorials: axis '{name}' must have two labels", list(axes[name]))
            require(pair[0] != pair[1], "factorials: two axes expected", list(pair))
