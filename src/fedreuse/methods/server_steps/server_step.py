"""Base class of server steps, which turn a direction into a move of the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.model import Model, apply
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from fedreuse.core.tensors import Tensors
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["ServerStep", "advance", "evaluated", "server_steps"]


class ServerStep(ABC):
    """Base class of server steps: a direction becomes a move of the weights (not of running statistics and counters).

    A step is a frozen dataclass. It must define `step`; `init` and `evaluated` are optional. A step that uses
    `statistics` must set `reads_statistics`.

    Example:
        >>> from dataclasses import dataclass
        >>> import numpy as np
        >>> from fedreuse import Schema, ServerStep, Tensors, TensorSpec
        >>> from fedreuse.core.tensors import dot, scale
        >>> @dataclass(frozen=True)
        ... class Clipped(ServerStep):
        ...     limit: float = 1.0
        ...
        ...     def step(self, direction, state, statistics):
        ...         length = dot(direction, direction) ** 0.5
        ...         return (direction if length <= self.limit else scale(direction, self.limit / length)), state
        >>> direction = Tensors(Schema((TensorSpec("w", (2,)),)), np.float32([3, 4]))
        >>> Clipped(limit=2.5).step(direction, None, statistics=None)[0].values.tolist()
        [1.5, 2.0]
    """

    @property
    def reads_statistics(self) -> bool:
        """True if the direction must consist only of this round's contributions, which `statistics` describe."""
        return False

    @property
    def reads_slopes(self) -> bool:
        """True if clients must report how their updates depend on the received model (`Contribution.slope`)."""
        return False

    def init(self, like: Tensors) -> Any:
        """Return the state before the first step (default None); `like` are the initial weights."""
        del like

    @abstractmethod
    def step(self, direction: Tensors, state: Any, statistics: Statistics) -> tuple[Tensors, Any]:
        """Return the move of the weights and the new state.

        Args:
            direction: The aggregated update of the weights.
            state: The state after the last step, or from `init`.
            statistics: The contributions behind the direction.
        """

    def evaluated(self, weights: Tensors, state: Any) -> Tensors:
        """Return the weights that are evaluated and deployed; by default those that are sent to clients.

        A step that evaluates an average of its iterates keeps the necessary tensors in its state.
        """
        del state
        return weights


server_steps: Registry[ServerStep] = Registry("server_steps", "fedreuse.methods.server_steps", base=ServerStep)


def advance(
    step: ServerStep, model: Model, direction: Model, state: Any, statistics: Statistics
) -> tuple[Model, Any, int]:
    """Return the model after a step, the step's new state, and the number of variances that kept their value."""
    move, after = step.step(direction.weights, state, statistics)
    moved, num_kept = apply(model, replace(direction, weights=move))
    return moved, after, num_kept


def evaluated(step: ServerStep, model: Model, state: Any) -> Model:
    """Return the model that is evaluated, given the one that is sent to clients."""
    weights = step.evaluated(model.weights, state)
    return model if weights is model.weights else replace(model, weights=weights)
