"""Directions of random signs that server and clients draw from a seed, and moves along them.

Moves are sums in a fixed order without BLAS, so that both ends compute the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.core.message import Value
    from fedreuse.core.method import Scope

__all__ = ["along", "check_basis", "check_shared", "signs"]


def signs(basis: int, step: int, number: int, size: int) -> np.ndarray:
    """Return a direction of +1 and -1 (int8).

    Args:
        basis: Seed of all directions.
        step: The step of the run that the direction belongs to.
        number: Number of the direction in its step.
        size: Its length.
    """
    drawn = np.frombuffer(stream(basis, "directions", step, number).bytes(-(-size // 8)), np.uint8)
    return (np.unpackbits(drawn, count=size).view(np.int8) << 1) - np.int8(1)


def along(weights: Tensors, moves: Iterable[tuple[float, np.ndarray]]) -> Tensors:
    """Return weights moved along directions, each by a coordinate; in the order given."""
    moved = np.array(weights.values)
    for coordinate, direction in moves:
        moved += moved.dtype.type(coordinate) * direction
    return Tensors(weights.schema, moved)


def check_basis(sent: Value, own: int) -> None:
    """Raise RunError if the server draws its directions from another seed than this client."""
    if sent != own:
        raise RunError(
            f"the server draws its directions from method.basis {sent!r}, this client from {own}; "
            "set the same method.basis at both ends"
        )


def check_shared(name: str, scope: Scope) -> None:
    """Raise ConfigError in a federation whose clients do not create the initial model themselves."""
    if not scope.shares_initial:
        raise ConfigError(
            f"method {name} sends coordinates of moves from the initial model, but clients do not create that model "
            "here; run it with a configured network (fedreuse run, fedreuse deploy)"
        )
