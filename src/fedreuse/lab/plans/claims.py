"""What a plan claims: A - B and what is to be shown of it, in each of the blocks (datasets, say) it speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.report.statistics.hypotheses import Better, Hypothesis, Test

__all__ = ["Axes", "Claim", "Contrast", "claims_of", "require_known"]

Axes = Mapping[str, Sequence[str]]
"""The labels of every axis of a study but the seed."""


@dataclass(frozen=True)
class Contrast:
    """A - B, and what is to be shown of it.

    Args:
        of: A: a label of an axis of the study.
        against: B: another label of the same axis.
        test: `superiority`, `non_inferiority` or `equivalence`.
        margin: In the unit of the metric: 0.01 is one point of accuracy; bytes for bytes.
        better: Which sign of A - B speaks for A: `higher`, `lower`, or `either` for a two-sided test.
        within: Labels of other axes (datasets, say) to which the contrast is restricted; none: all of them.

    Raises:
        ConfigError: A margin or direction that the test cannot have, or A = B.

    Example:
        >>> Contrast("DG-FedReuse", "Top-K", test="equivalence", margin=0.01).title
        'DG-FedReuse - Top-K: equivalence within 0.01'

    """

    of: str
    against: str
    test: Test = "superiority"
    margin: float = 0.0
    better: Better = "either"
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that there is something to compare, and the hypothesis."""
        require(self.of != self.against, "of and against must be two labels", self.of)
        _ = self.hypothesis

    @property
    def hypothesis(self) -> Hypothesis:
        """What is to be shown of the differences."""
        return Hypothesis(self.test, self.margin, self.better)

    @property
    def title(self) -> str:
        """For people: A - B and the claim, with the margin as the plan gives it."""
        return self.title_with(f"{self.margin:g}")

    def title_with(self, margin: str) -> str:
        """The title with the margin in other words, such as `1 point` for 0.01."""
        by = f" by more than {margin}" if self.margin else ""
        claims = {
            "superiority": f"{'a difference' if self.better == 'either' else self.better}{by}",
            "non_inferiority": f"not {'lower' if self.better == 'higher' else 'higher'} by {margin}",
            "equivalence": f"equivalence within {margin}",
        }
        where = f" within {', '.join(self.within)}" if self.within else ""
        return f"{self.of} - {self.against}{where}: {claims[self.test]}"


@dataclass(frozen=True)
class Claim:
    """A contrast in one block: all axes but that of the contrast (and the seed) at one label each."""

    contrast: Contrast
    axis: str
    block: tuple[tuple[str, str], ...]

    @property
    def cells(self) -> tuple[dict[str, str], dict[str, str]]:
        """The labels of A and of B, by axis."""
        return {**dict(self.block), self.axis: self.contrast.of}, {**dict(self.block), self.axis: self.contrast.against}

    @property
    def where(self) -> str:
        """The labels of the block, for people; empty if the study has one axis."""
        return ", ".join(label for _, label in self.block)


def claims_of(contrast: Contrast, axes: Axes) -> list[Claim]:
    """A contrast in every block it speaks of.

    Raises:
        ConfigError: A label that the study does not have, with the nearest that it has.

    Example:
        >>> axes = {"method": ["A", "B"], "dataset": ["mnist", "digits"]}
        >>> [claim.where for claim in claims_of(Contrast("A", "B", within=("mnist",)), axes)]
        ['mnist']

    """
    axis = _axis_of(contrast, axes)
    others = {name: labels for name, labels in axes.items() if name != axis}
    for label in contrast.within:
        require_known(label, [one for labels in others.values() for one in labels], f"'{contrast.title}', within")
    kept = {
        name: [label for label in labels if label in contrast.within] or list(labels) for name, labels in others.items()
    }
    return [Claim(contrast, axis, tuple(zip(kept, labels, strict=True))) for labels in product(*kept.values())]


def _axis_of(contrast: Contrast, axes: Axes) -> str:
    """The axis that both labels belong to."""
    labels = [label for of_axis in axes.values() for label in of_axis]
    for label in (contrast.of, contrast.against):
        require_known(label, labels, f"'{contrast.title}'")
    for name, of_axis in axes.items():
        if contrast.of in of_axis and contrast.against in of_axis:
            return name
    raise ConfigError(f"'{contrast.title}': its labels belong to different axes; compare labels of one axis")


def require_known(label: str, known: Sequence[str], where: str) -> None:
    """Refuse a label that the study does not have."""
    if label not in known:
        raise ConfigError(f"{where}: the study has no '{label}'; {suggest(label, known)}")
