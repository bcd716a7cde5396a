"""Error feedback (Fed-EF; Li & Li, 2023): the codec's error is added to the client's next update.

c_t   = C(delta_t + e_t)                    sent
e_t+1 = delta_t + e_t - decoded(c_t)        kept by the client until it takes part again

`decay` and `decay_per_round` multiply e_t by decay * decay_per_round^age, where age is in rounds since it was stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.links.estimates import part_of, with_part
from fedreuse.compression.links.link import links
from fedreuse.core.errors import WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, add, scale, sub
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel

__all__ = ["Dated", "ErrorFeedback"]


@value
class Dated:
    """A residual and the round in which it was stored; used if the residual decays per round."""

    residual: Tensors
    round_number: int


@links.register("error_feedback")
@dataclass(frozen=True)
class ErrorFeedback(Link):
    """Error feedback: the residual of the codec is added to the next update.

    Args:
        codec: Any contractive codec (`top_k`, `narrow`, `ternary`, ...).
        decay: Share of the residual that is kept at each participation, in (0, 1]; 1 is Fed-EF.
        decay_per_round: Share of the residual that is kept for each round since it was stored, in (0, 1].

    Raises:
        ConfigError: If a value is out of range, or the codec is not contractive.

    Example: `uplink: {update: {name: error_feedback, codec: {name: top_k, ratio: 0.1}}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    decay: float = 1.0
    decay_per_round: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require_contraction(self.codec, "error_feedback")
        for name in ("decay", "decay_per_round"):
            require(0 < getattr(self, name) <= 1, f"error_feedback.{name} must be in (0, 1]", getattr(self, name))

    @property
    def drops_coordinates(self) -> bool:
        """True if the codec drops coordinates."""
        return self.codec.drops_coordinates

    def send(
        self, tensors: Tensors, state: Tensors | Dated | None, context: LinkContext
    ) -> tuple[Parcel, Tensors | Dated]:
        """Encode the update plus residual and keep the new residual; that of absent tensors stays."""
        held = self._as_of(context.round_number, state)
        wanted = tensors if held is None else add(tensors, _times(self.decay, part_of(held, tensors.schema)))
        parcel = self.codec.encode(wanted, context.schema, context.rng)
        left = sub(wanted, part_of(parcel.decode(context.schema), wanted.schema))
        after = with_part(held, left, context.schema)
        return parcel, after if self.decay_per_round == 1 else Dated(after, context.round_number)

    def receive(self, parcel: Parcel | None, state: None, context: LinkContext) -> tuple[Tensors, None]:
        """Decode; the receiver has no state."""
        del state
        if parcel is None:
            raise WireError("error_feedback always sends a parcel")
        return parcel.decode(context.schema), None

    def delivered(self, parcel: Parcel | None, state: Tensors | Dated, context: LinkContext) -> Tensors:
        """Return the decoded parcel."""
        del state
        return self.receive(parcel, None, context)[0]

    def _as_of(self, now: int, state: Tensors | Dated | None) -> Tensors | None:
        """Return the residual decayed to a round, including tensors that this message lacks."""
        if not isinstance(state, Dated):
            return state
        return _times(self.decay_per_round ** (now - state.round_number), state.residual)


def _times(factor: float, residual: Tensors) -> Tensors:
    return residual if factor == 1 else scale(residual, factor)  # 1 is usual: saves a copy of the model
