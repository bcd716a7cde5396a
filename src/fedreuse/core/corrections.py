"""What is added to a local gradient, as data: a shift and a pull towards an anchor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from fedreuse.core.tensors import Tensors

__all__ = ["Correction", "proximal"]


@dataclass(frozen=True, eq=False)
class Correction:
    """gradient + shift + pull * (w - anchor), entering before or after the momentum buffer."""

    shift: Tensors | None = None
    pull: float = 0.0
    anchor: Tensors | None = None
    place: Literal["before_momentum", "after_momentum"] = "before_momentum"


def proximal(anchor: Tensors, mu: float) -> Correction | None:
    """Gradient of mu/2 |w - anchor|^2, added to every step; nothing at all when mu is zero."""
    return Correction(pull=mu, anchor=anchor) if mu else None
