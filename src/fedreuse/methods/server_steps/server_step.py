"""What a server step is: it turns a direction into a move of the weights; its state is a value like any other."""

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

    A step is a frozen dataclass. `init` and `evaluated` may stay as they are; `step` must be defined. One that reads
    `statistics` says so by `reads_statistics`.

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
        """Whether the direction must be made of this round's contributions alone, which `statistics` describe."""
        return False

    def init(self, like: Tensors) -> Any:
        """The state before the first step; `like` holds the weights. None, unless the step remembers something."""
        del like

    @abstractmethod
    def step(self, direction: Tensors, state: Any, statistics: Statistics) -> tuple[Tensors, Any]:
        """Return the move and the new state; `statistics` describe what the direction was made of."""

    def evaluated(self, weights: Tensors, state: Any) -> Tensors:
        """The weights that are evaluated and deployed: those that are sent to clients, unless the step says otherwise.

        A step that evaluates an average of its iterates keeps what it needs for that in its state.
        """
        del state
        return weights


server_steps: Registry[ServerStep] = Registry("server_steps", "fedreuse.methods.server_steps", base=ServerStep)


def advance(
    step: ServerStep, model: Model, direction: Model, state: Any, statistics: Statistics
) -> tuple[Model, Any, int]:
    """The model after a step along a direction, the step's new state, and how many variances kept their value."""
    move, after = step.step(direction.weights, state, statistics)
    moved, num_kept = apply(model, replace(direction, weights=move))
    return moved, after, num_kept


def evaluated(step: ServerStep, model: Model, state: Any) -> Model:
    """The model that is evaluated, given the one that is sent to clients."""
    weights = step.evaluated(model.weights, state)
    return model if weights is model.weights else replace(model, weights=weights)
