"""Sums over examples, per output: states of metrics of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from fedreuse.core.metrics import State

__all__ = ["mean_error", "sums"]


def sums(*columns: torch.Tensor) -> State:
    """The sum of each tensor over examples, per output, in double precision."""
    return tuple(tuple(one.double().sum(0).tolist()) for one in columns)


def mean_error(state: State, examples: int, of_mean: Callable[[float], float] = float) -> float:
    """The mean over outputs of an error whose sums a state holds, each from its mean over examples; nan of nothing."""
    held: Any = state
    errors = held[0] if examples else ()
    return sum(of_mean(one / examples) for one in errors) / len(errors) if errors else float("nan")
