"""Sums over examples, per output: states of metrics of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["sums"]


def sums(*columns: torch.Tensor) -> State:
    """The sum of each tensor over examples, per output, in double precision."""
    return tuple(tuple(one.double().sum(0).tolist()) for one in columns)
