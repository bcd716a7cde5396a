"""A tensor as a multiple of one that both ends of a link hold: a coefficient, or a repetition of the previous one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["COEFFICIENT"]


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del notes
    if count > 1:
        raise WireError(f"{spec.name}: {count} coefficients for one tensor")
    return (take(np.dtype("<f4"), 1),) if count else ()


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del block, notes
    raise WireError(f"{spec.name}: a coefficient needs the look-back, which only the link lbgm holds")


COEFFICIENT = add_mode(Mode(9, "coefficient", _read, _decode))
"""One float32 for a recycled tensor; a count of 0 repeats the coefficient of the previous tensor."""
