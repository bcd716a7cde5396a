"""The base class of metrics: a state per batch, states that add up, and the value of their sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, ClassVar, NoReturn

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import Registry
from fedreuse.learning.own_function import OwnFunction
from fedreuse.learning.targets import LabelKind

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["Metric", "OwnMetric", "metrics"]


class Metric(ABC):
    """Base class of metrics: frozen dataclasses that score the outputs of a network.

    Higher is better, unless `can_select` is False: such a metric is reported, but cannot be `task.metric`.
    `label_kinds` names the kinds of labels it is for (None: all). `is_share` marks values in [0, 1]; a plan with a
    margin of 1 or more, or a target above 1, is then refused.

    Batches, clients and workers each make a state, states are added entry by entry, and `value` returns the number of
    the sum. With integers in the state the result does not depend on the division of the examples into batches.

    Raises:
        ConfigError: A state is neither a Python number nor a tuple of states.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse import Metric
        >>> @dataclass(frozen=True)
        ... class Precision(Metric):
        ...     of: int = 1
        ...     def __call__(self, outputs, labels):
        ...         predicted = outputs.argmax(1) == self.of
        ...         return int((predicted & (labels == self.of)).sum()), int(predicted.sum())
        ...     def value(self, state, examples):
        ...         correct, predicted = state
        ...         return correct / predicted if predicted else float("nan")
        >>> Precision().value((3, 4), 10)
        0.75
    """

    can_select: ClassVar[bool] = True
    instead: ClassVar[str] = "report it under task.metrics"
    """Advice in the error message if the metric cannot be `task.metric`."""
    label_kinds: ClassVar[tuple[LabelKind, ...] | None] = None
    is_share: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Return the state of a batch: a number, or nested tuples of numbers."""

    def value(self, state: State, examples: int) -> float:
        """Return the value of a state, nan if undefined; by default the sum divided by `examples`.

        `examples` is the number of examples, or of tokens that count.
        """
        if isinstance(state, tuple):
            raise NotImplementedError(f"{type(self).__name__} must define value(state, examples)")
        return state / examples if examples else float("nan")


@dataclass(frozen=True)
class OwnMetric(OwnFunction, Metric):
    """A custom function that returns the sum over a batch."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Return the sum as a Python number.

        Raises:
            ConfigError: The function returns something that is not a number, or nan for finite outputs.
        """
        total = super().__call__(outputs, labels)
        try:
            # float("0.9") would succeed, and hide that the function returns text
            number = float(total) if not isinstance(total, str | bytes) else _refuse(self.name, total)
        except (TypeError, ValueError, RuntimeError):
            return _refuse(self.name, total)
        if isnan(number) and bool(outputs.isfinite().all()):  # else training diverged, which is reported as such
            raise ConfigError(
                f"metric {self.name} returns nan for a batch of {len(outputs)} examples, although all outputs of the "
                "network are finite; return the sum over the examples, and 0 for those without a value"
            )
        return number


def _refuse(name: str, value: object) -> NoReturn:
    raise ConfigError(
        f"metric {name} returns {type(value).__name__} for a batch; one number is needed, the sum over its examples "
        "(float(...), int(...))"
    )


metrics: Registry[Metric] = Registry("metrics", "fedreuse.learning.metrics", adapt=OwnMetric, base=Metric)
