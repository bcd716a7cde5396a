"""States of regression metrics: sums over examples, per output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from fedreuse.core.metrics import State

__all__ = ["mean_error", "sums"]


def sums(*columns: torch.Tensor) -> State:
    """Return the sum of each tensor over examples, per output, in double precision."""
    return tuple(tuple(column.double().sum(0).tolist()) for column in columns)


def mean_error(state: State, examples: int, of_mean: Callable[[float], float] = float) -> float:
    """Return the mean over outputs of `of_mean(sum / examples)`; nan without examples."""
    held: Any = state
    errors = held[0] if examples else ()
    return sum(of_mean(error / examples) for error in errors) / len(errors) if errors else float("nan")
