"""Claims of a plan: contrasts A - B with a hypothesis, one claim per block (such as a dataset)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.report.statistics.hypotheses import Better, Hypothesis, Test

__all__ = ["Axes", "Claim", "Contrast", "claims_of", "require_known"]

Axes = Mapping[str, Sequence[str]]
"""The labels of every axis of a study except the seed."""


@dataclass(frozen=True)
class Contrast:
    """A contrast A - B and its hypothesis.

    Args:
        of: A, a label of an axis of the study.
        against: B, another label of the same axis.
        test: `superiority`, `non_inferiority` or `equivalence`.
        margin: In the unit of the metric: 0.01 is one point of accuracy; bytes for bytes.
        better: The sign of A - B that favours A: `higher`, `lower`, or `either` for a two-sided test.
        within: Labels of other axes (such as datasets) to which the contrast is restricted; empty: all of them.

    Raises:
        ConfigError: The test cannot have this margin or direction, or A equals B.

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
        """Check that both labels differ, and the hypothesis."""
        require(self.of != self.against, "of and against must be two labels", self.of)
        _ = self.hypothesis

    @property
    def hypothesis(self) -> Hypothesis:
        """The hypothesis about the differences."""
        return Hypothesis(self.test, self.margin, self.better)

    @property
    def title(self) -> str:
        """A - B and the claim as text, with the margin as in the plan."""
        return self.title_with(f"{self.margin:g}")

    def title_with(self, margin: str) -> str:
        """Return the title with another text for the margin, such as `1 point` for 0.01."""
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
    """A contrast in one block: one label for every axis except that of the contrast and the seed."""

    contrast: Contrast
    axis: str
    block: tuple[tuple[str, str], ...]

    @property
    def cells(self) -> tuple[dict[str, str], dict[str, str]]:
        """The labels of A and of B, by axis."""
        return {**dict(self.block), self.axis: self.contrast.of}, {**dict(self.block), self.axis: self.contrast.against}

    @property
    def where(self) -> str:
        """The labels of the block as text; empty if the study has one axis."""
        return ", ".join(label for _, label in self.block)


def claims_of(contrast: Contrast, axes: Axes) -> list[Claim]:
    """Return one claim per block of a contrast.

    Raises:
        ConfigError: The study has no such label; the message suggests the nearest one.

    Example:
        >>> axes = {"method": ["A", "B"], "dataset": ["mnist", "digits"]}
        >>> [claim.where for claim in claims_of(Contrast("A", "B", within=("mnist",)), axes)]
        ['mnist']

    """
    axis = _axis_of(contrast, axes)
    others = {name: labels for name, labels in axes.items() if name != axis}
    for label in contrast.within:
        require_known(label, [known for labels in others.values() for known in labels], f"'{contrast.title}', within")
    kept = {
        name: [label for label in labels if label in contrast.within] or list(labels) for name, labels in others.items()
    }
    return [Claim(contrast, axis, tuple(zip(kept, labels, strict=True))) for labels in product(*kept.values())]


def _axis_of(contrast: Contrast, axes: Axes) -> str:
    """Return the axis of both labels."""
    labels = [label for of_axis in axes.values() for label in of_axis]
    for label in (contrast.of, contrast.against):
        require_known(label, labels, f"'{contrast.title}'")
    for name, of_axis in axes.items():
        if contrast.of in of_axis and contrast.against in of_axis:
            return name
    raise ConfigError(f"'{contrast.title}': its labels belong to different axes; compare labels of one axis")


def require_known(label: str, known: Sequence[str], where: str) -> None:
    """Check that the study has a label."""
    if label not in known:
        raise ConfigError(f"{where}: the study has no '{label}'; {suggest(label, known)}")
