"""The evaluation of a model: states that are added, so that batches, clients and workers can each make a part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import RunError

if TYPE_CHECKING:
    from fedreuse.core.message import Value

__all__ = ["Metrics", "Read", "State"]

State = int | float | tuple["State", ...]
"""What a metric keeps of some examples: a number, or (nested) tuples of numbers. States of two parts are added."""


@dataclass(frozen=True)
class Metrics:
    """Evaluation of a model on some examples.

    Args:
        examples: How many examples there were.
        loss: Sum of the loss over them.
        score: State of the metric that selects; a sum over the examples, if the metric is one.
        more: States of the metrics that are reported beside it.

    Example:
        >>> from fedreuse.core.metrics import Metrics
        >>> Metrics(2, 1.0, 2.0, ((1, 0),)) + Metrics(2, 0.5, 1.0, ((0, 3),))
        Metrics(examples=4, loss=1.5, score=3.0, more=((1, 3),))
    """

    examples: int
    loss: float
    score: State
    more: tuple[State, ...] = ()

    def __add__(self, other: Metrics) -> Metrics:
        """Over the examples of both."""
        more: Any = _sum(self.more, other.more)
        return Metrics(self.examples + other.examples, self.loss + other.loss, _sum(self.score, other.score), more)

    @property
    def mean_score(self) -> float:
        """The metric per example, if it is a sum."""
        assert not isinstance(self.score, tuple)
        return self.score / self.examples if self.examples else float("nan")

    @property
    def mean_loss(self) -> float:
        """Loss per example."""
        return self.loss / self.examples if self.examples else float("nan")

    @property
    def form(self) -> object:
        """Where the numbers of the states are; only states of one form can be added."""
        return _form(self.score), _form(self.more)

    def means(self) -> dict[str, float]:
        """Score and loss per example, where the one metric is a sum."""
        return {"score": self.mean_score, "loss": self.mean_loss}

    def to_values(self) -> dict[str, Value]:
        """As the values of a message; without other metrics these are three numbers."""
        values: dict[str, Value] = {"examples": self.examples, "loss": self.loss, "score": self.score}
        return values | {"more": self.more} if self.more else values


Read = Callable[[Metrics], Mapping[str, float]]
"""The numbers that states stand for: `score`, `loss`, and others by the names that the configuration gives them."""


def _sum(first: State, second: State) -> State:
    """Entry by entry; 0 and () are the states of no examples."""
    if not isinstance(first, tuple) and not isinstance(second, tuple):
        return first + second
    if first in (0, ()) or second in (0, ()):
        return second if first in (0, ()) else first
    if not isinstance(first, tuple) or not isinstance(second, tuple) or len(first) != len(second):
        raise RunError(f"states of a metric cannot be added: {_form(first)} and {_form(second)} numbers")
    return tuple(_sum(*pair) for pair in zip(first, second, strict=True))


def _form(state: State) -> object:
    return tuple(_form(inner) for inner in state) if isinstance(state, tuple) else 1
