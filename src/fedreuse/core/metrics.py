"""Results of an evaluation as additive states, which batches, clients and workers compute separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import RunError

if TYPE_CHECKING:
    from fedreuse.core.message import Value

__all__ = ["Metrics", "Read", "State", "score_of"]

State = int | float | tuple["State", ...]
"""The state of a metric over some examples: a number, or (nested) tuples of numbers. States are added."""


@dataclass(frozen=True)
class Metrics:
    """The evaluation of a model on some examples.

    Args:
        examples: Number of examples.
        loss: Sum of the loss over them.
        score: State of the primary metric, by which models are selected.
        more: States of the other metrics.

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
        """Return the evaluation over the examples of both."""
        more: Any = _sum(self.more, other.more)
        return Metrics(self.examples + other.examples, self.loss + other.loss, _sum(self.score, other.score), more)

    @property
    def mean_score(self) -> float:
        """The primary metric per example, if its state is a sum over examples."""
        assert not isinstance(self.score, tuple)
        return self.score / self.examples if self.examples else float("nan")

    @property
    def mean_loss(self) -> float:
        """The loss per example."""
        return self.loss / self.examples if self.examples else float("nan")

    @property
    def form(self) -> object:
        """The structure of the states; only states of equal structure can be added."""
        return _form(self.score), _form(self.more)

    def means(self) -> dict[str, float]:
        """Return score and loss per example, if the primary metric's state is a sum over examples."""
        return {"score": self.mean_score, "loss": self.mean_loss}

    @property
    def longest(self) -> Metrics:
        """The same structure with numbers that are as long in a message as numbers can be."""
        more: Any = _longest(self.more)
        return Metrics(_LONG, float(_LONG), _longest(self.score), more)

    def to_values(self) -> dict[str, Value]:
        """Return the evaluation as the values of a message."""
        values: dict[str, Value] = {"examples": self.examples, "loss": self.loss, "score": self.score}
        return values | {"more": self.more} if self.more else values


_LONG = 1 << 40
"""A number that takes nine bytes in a message, as a float does."""


def _longest(state: State) -> State:
    return tuple(_longest(inner) for inner in state) if isinstance(state, tuple) else _LONG


Read = Callable[[Metrics], Mapping[str, float]]
"""A function from states to numbers: `score`, `loss`, and others by their names in the configuration."""


def _sum(first: State, second: State) -> State:
    """Add entry by entry; 0 and () are the states of no examples."""
    if not isinstance(first, tuple) and not isinstance(second, tuple):
        return first + second
    if first in (0, ()) or second in (0, ()):
        return second if first in (0, ()) else first
    if not isinstance(first, tuple) or not isinstance(second, tuple) or len(first) != len(second):
        raise RunError(f"states of a metric differ in structure: {_form(first)} and {_form(second)}")
    return tuple(_sum(*pair) for pair in zip(first, second, strict=True))


def _form(state: State) -> object:
    return tuple(_form(inner) for inner in state) if isinstance(state, tuple) else 1


def score_of(row: Mapping[str, Any]) -> float | None:
    """Return the validation score by which a run is judged in a round: of the clients' own models, or of its model.

    Args:
        row: The scores of a round by column.

    Example:
        >>> from fedreuse.core.metrics import score_of
        >>> score_of({"validation_score": 0.5}), score_of({"validation_score": 0.5, "personal_validation_score": 0.7})
        (0.5, 0.7)
    """
    score: float | None = row["personal_validation_score" if "personal_validation_score" in row else "validation_score"]
    return score
