"""What a metric is: a state of every batch, states that are added, and the number that the sum stands for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.core.registry import Registry
from fedreuse.learning.own_function import OwnFunction
from fedreuse.learning.targets import LabelKind

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["Metric", "OwnMetric", "metrics"]


class Metric(ABC):
    """Base class of metrics: frozen dataclasses that score the outputs of a network.

    Higher is better, unless `can_select` is False: such a metric is reported, but is not `task.metric`. `label_kinds`
    says which labels it is for; None is all. `is_share` says that the number is from 0 to 1: a plan with a margin
    of 1 or more, or a target above 1, is refused then.

    Batches, clients and workers each make a state, states are added entry by entry, and `value` makes a number of the
    sum. Whole numbers make the result independent of how the examples were cut into parts.

    Raises:
        ConfigError: A state is neither a number of Python nor a tuple of such states.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse import Metric
        >>> @dataclass(frozen=True)
        ... class Precision(Metric):
        ...     of: int = 1
        ...     def __call__(self, outputs, labels):
        ...         said = outputs.argmax(1) == self.of
        ...         return int((said & (labels == self.of)).sum()), int(said.sum())
        ...     def value(self, state, examples):
        ...         right, said = state
        ...         return right / said if said else float("nan")
        >>> Precision().value((3, 4), 10)
        0.75
    """

    can_select: ClassVar[bool] = True
    instead: ClassVar[str] = "report it under task.metrics"
    """What to do where it cannot select."""
    label_kinds: ClassVar[tuple[LabelKind, ...] | None] = None
    is_share: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Return the state of a batch: a number, or nested tuples of numbers."""

    def value(self, state: State, examples: int) -> float:
        """The number of a state, undefined as nan; by default a sum per example (per token that counts)."""
        if isinstance(state, tuple):
            raise NotImplementedError(f"{type(self).__name__} must define value(state, examples)")
        return state / examples if examples else float("nan")


@dataclass(frozen=True)
class OwnMetric(OwnFunction, Metric):
    """A user's function that gives the sum over a batch."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """The sum as a number of Python."""
        return float(super().__call__(outputs, labels))


metrics: Registry[Metric] = Registry("metrics", "fedreuse.learning.metrics", adapt=OwnMetric, base=Metric)
