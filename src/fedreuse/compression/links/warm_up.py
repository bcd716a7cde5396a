"""More in the first rounds: another link whose ratio, or allowance of bytes, falls to where it stays.

f_t = rest * (first / rest)^(1 - (t - 1) / rounds)        in rounds 1 to `rounds`, then rest
sent: by the other link, with f_t times its codec's ratio or bytes

Deep gradient compression (Lin et al., 2018) raises the sparsity in the same way over the first epochs.
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
    """Let another link send more in the first rounds, when models change fastest, and less later.

    The receiver needs to know nothing of it: a parcel says what it carries.

    Args:
        link: The link that sends; its codec must have a ratio (`top_k`, `ternary`, `allot`, ...) or be `fit`, perhaps
            inside other codecs and links.
        rounds: Over how many rounds the factor falls, at least 1.
        first: Factor on the ratio, or on the bytes of `fit`, in round 1, positive; a ratio never exceeds 1.
        rest: Factor after these rounds, positive.

    Example: `uplink: {update: {name: warm_up, rounds: 10, link: {name: error_feedback, codec: top_k}}}`.
    """

    link: Link = part(links, "error_feedback")
    rounds: int = 10
    first: float = 4.0
    rest: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges, and that there is something to change."""
        require(self.rounds >= 1, "warm_up.rounds must be at least 1", self.rounds)
        for name in ("first", "rest"):
            require(getattr(self, name) > 0, f"warm_up.{name} must be positive", getattr(self, name))
        require(
            ratio_of(_codec_of(self.link)) is not None,
            "warm_up.link must have a codec with a ratio (top_k, ternary, allot, ...) or fit, perhaps inside others",
            links.name_of(self.link),
        )

    def factor(self, round_number: int) -> float:
        """f_t, with rounds counted from 1."""
        left = max(0.0, 1 - (round_number - 1) / self.rounds)
        return float(self.rest * (self.first / self.rest) ** left)

    def share(self, tensors: Tensors, shared: Any, context: LinkContext) -> Any:
        """As the other link of this round."""
        return self._at(context).share(tensors, shared, context)

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """As the other link of this round; its memory goes on."""
        return self._at(context).send(tensors, state, context)

    def _at(self, context: LinkContext) -> Link:
        return _scaled(self.link, self.factor(context.round_number))


def _codec_of(link: Any) -> Any:
    """The codec that decides how much is sent; the link itself where it has none."""
    while isinstance(link, AroundLink):
        link = link.link
    return getattr(link, "codec", link)


def _scaled(link: Any, factor: float) -> Link:
    inner = (
        {"link": _scaled(link.link, factor)} if isinstance(link, AroundLink) else {"codec": scaled(link.codec, factor)}
    )
    changed: Link = replace(link, **inner)
    return changed
