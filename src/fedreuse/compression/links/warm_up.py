"""Warm-up: another link whose ratio or byte budget is larger in the first rounds.

f_t = rest * (first / rest)^(1 - (t - 1) / rounds)        in rounds 1 to `rounds`, then rest
sent: by the wrapped link, with f_t times its codec's ratio or bytes

Deep gradient compression (Lin et al., 2018) increases the sparsity over the first epochs in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedreuse.compression.codecs.ratio import ratio_of, scaled
from fedreuse.compression.links.around import AroundLink
from fedreuse.compression.links.link import links
from fedreuse.core.errors import require
from fedreuse.core.method import Link
from fedreuse.core.registry import part

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.method import LinkContext
    from fedreuse.core.tensors import Tensors

__all__ = ["WarmUp"]


@links.register("warm_up")
@dataclass(frozen=True)
class WarmUp(AroundLink):
    """A larger ratio or byte budget of another link in the first rounds, when models change fastest.

    The receiver does not depend on the factor: parcels describe their content.

    Args:
        link: The link that sends; its codec must have a ratio (`top_k`, `ternary`, `allot`, ...) or be `fit`,
            optionally inside other codecs and links.
        rounds: Number of rounds over which the factor falls, at least 1.
        first: Factor of the ratio, or of the bytes of `fit`, in round 1, positive; a ratio never exceeds 1.
        rest: Factor after these rounds, positive.

    Raises:
        ConfigError: If a value is out of range, or the link has no ratio or byte budget.

    Example: `uplink: {update: {name: warm_up, rounds: 10, link: {name: error_feedback, codec: top_k}}}`.
    """

    link: Link = part(links, "error_feedback")
    rounds: int = 10
    first: float = 4.0
    rest: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges and that the link has a ratio or byte budget."""
        require(self.rounds >= 1, "warm_up.rounds must be at least 1", self.rounds)
        for name in ("first", "rest"):
            require(getattr(self, name) > 0, f"warm_up.{name} must be positive", getattr(self, name))
        require(
            ratio_of(_codec_of(self.link)) is not None,
            "warm_up.link must have a codec with a ratio (top_k, ternary, allot, ...) or fit, optionally inside others",
            links.name_of(self.link),
        )

    def factor(self, round_number: int) -> float:
        """Return f_t, with rounds counted from 1."""
        left = max(0.0, 1 - (round_number - 1) / self.rounds)  # share of the warm-up that is still ahead
        return float(self.rest * (self.first / self.rest) ** left)

    def share(self, tensors: Tensors, shared: Any, context: LinkContext) -> Any:
        """Delegate to the wrapped link with this round's factor."""
        return self._at(context).share(tensors, shared, context)

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Delegate to the wrapped link with this round's factor; its state carries over between rounds."""
        return self._at(context).send(tensors, state, context)

    def _at(self, context: LinkContext) -> Link:
        return _scaled(self.link, self.factor(context.round_number))


def _codec_of(link: Any) -> Any:
    """Return the codec inside wrapping links, or the innermost link itself if it has none."""
    while isinstance(link, AroundLink):
        link = link.link
    return getattr(link, "codec", link)


def _scaled(link: Any, factor: float) -> Link:
    inner = (
        {"link": _scaled(link.link, factor)} if isinstance(link, AroundLink) else {"codec": scaled(link.codec, factor)}
    )
    changed: Link = replace(link, **inner)
    return changed
