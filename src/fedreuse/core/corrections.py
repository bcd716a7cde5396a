"""Corrections of local gradients as data: a shift and a pull towards an anchor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from fedreuse.core.tensors import Tensors

__all__ = ["Correction", "proximal"]


@dataclass(frozen=True, eq=False)
class Correction:
    """A term added to each local gradient: shift + pull * (w - anchor).

    Args:
        shift: Added to the gradient; None adds nothing.
        pull: Factor of the pull towards the anchor; 0 disables it.
        anchor: The weights that `pull` pulls towards.
        place: Whether the term is added before or after the momentum buffer.
    """

    shift: Tensors | None = None
    pull: float = 0.0
    anchor: Tensors | None = None
    place: Literal["before_momentum", "after_momentum"] = "before_momentum"


def proximal(anchor: Tensors, mu: float) -> Correction | None:
    """Return the gradient of mu/2 |w - anchor|^2 as a correction, or None if mu is zero."""
    return Correction(pull=mu, anchor=anchor) if mu else None
