"""DoCoFL (Dorfman et al., 2023): a wrapper that compresses the downlink for clients that take part rarely.

every Kd rounds:       y <- C_w(w_t), the newest of at most V anchors
before it takes part:  a client fetches the newest anchor, outside of training           message `prefetch`
when it takes part:    c_i = C_c(w_t - y_i) is sent instead of w_t                        group `correction`
at the client:         what_i = y_i + c_i; the inner method trains from it, so its update is w_i - what_i
at the server:         the inner method adds the updates to w_t

A client without an anchor, or with one that the server no longer holds, receives the model itself.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import RunError, require
from fedreuse.core.message import Answer, Message, Replies, Requests
from fedreuse.core.method import methods
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, add, sub, to_dense
from fedreuse.core.values import value
from fedreuse.methods.wrapper import OF_INNER, Wrapper, WrapperClient, WrapperServer

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation
    from fedreuse.core.method import BufferPolicy, Link
    from fedreuse.core.model import Model
    from fedreuse.core.needs import Needs
    from fedreuse.core.population import Population

__all__ = ["Anchor", "DoCoFl", "DoCoFlClient", "DoCoFlServer", "DoCoFlState", "Fetched"]

Fetching = Generator[Requests, Replies, dict[int, int]]
"""The last exchange of a round; returns the round of the anchor that each client fetched."""


@methods.register("docofl", refuses=dict.fromkeys(("aggregate", "step", "prox"), OF_INNER))
@dataclass(frozen=True)
class DoCoFl(Wrapper):
    """Any method whose clients fetch a compressed anchor in advance and then receive only a low-bit correction.

    Args:
        inner: The method whose downlink is compressed.
        anchor: Codec of the anchors.
        correction: Codec of the difference between model and anchor.
        anchor_every: Rounds between two anchors, at least 1.
        num_anchors: Anchors that the server keeps, at least 1.
        look_ahead: Rounds before its own in which a client may fetch an anchor, at least 1.

    Example: `method: {name: docofl, inner: fedprox}`.
    """

    anchor: Codec = part(codecs, {"name": "ecuq", "bits": 4.0})
    correction: Codec = part(codecs, {"name": "ecuq", "bits": 3.0})
    anchor_every: int = 10
    num_anchors: int = 3
    look_ahead: int = 2

    def __post_init__(self) -> None:
        """Refuse an inner method with a downlink of its own, and check the ranges."""
        require(self.anchor_every >= 1, "method.anchor_every must be at least 1", self.anchor_every)
        require(self.num_anchors >= 1, "method.num_anchors must be at least 1", self.num_anchors)
        require(self.look_ahead >= 1, "method.look_ahead must be at least 1", self.look_ahead)
        require(
            not self.inner.default_downlink,
            "method.inner must not compress the way down itself",
            methods.name_of(self.inner),
        )

    @property
    def needs(self) -> Needs:
        """Needs of the inner method, and the cohorts of the next rounds."""
        inner = self.inner.needs
        return replace(inner, look_ahead=max(inner.look_ahead, self.look_ahead))

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """Groups of the inner method, the anchor and the correction."""
        return (*self.inner.downlink_groups, "anchor", "correction")

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """The codecs C_w and C_c."""
        return {"anchor": Plain(self.anchor), "correction": Plain(self.correction)}

    def halves(self, buffers: BufferPolicy) -> tuple[DoCoFlServer, DoCoFlClient]:
        """Return the wrapped inner halves."""
        server, client = self.inner.halves(buffers)
        return DoCoFlServer(server, self), DoCoFlClient(client)


@value
class Anchor:
    """A compressed former model, as clients decode it, and the round at whose start it was made."""

    weights: Tensors
    round_number: int


@value
class DoCoFlState:
    """The inner state; anchors, newest first; the model of the newest one; the anchor's round by client."""

    inner: Any
    anchors: tuple[Anchor, ...]
    source: Tensors
    holders: Mapping[int, int]


@value
class Fetched:
    """The inner state, and the anchor that the client fetched last."""

    inner: Any
    anchor: Tensors | None


@dataclass(frozen=True)
class DoCoFlServer(WrapperServer):
    """The server half: publishes anchors, sends corrections instead of models, and lets clients fetch in advance."""

    config: DoCoFl

    def init(self, model: Model, population: Population) -> DoCoFlState:
        """Return the state without an anchor."""
        return DoCoFlState(self.inner.init(model, population), (), model.weights, {})

    def round(self, state: DoCoFlState, cohort: Cohort) -> Conversation[DoCoFlState]:
        """Run the inner round with corrections for models; then let the next cohorts fetch the newest anchor."""
        state = self._publish(state, cohort)
        anchors = {anchor.round_number: anchor.weights for anchor in state.anchors}
        holders = {client: made for client, made in state.holders.items() if made in anchors}
        conversation = self.inner.round(state.inner, cohort)
        requests = next(conversation)
        while True:
            replies = yield _corrected(requests, anchors, holders)
            # A client that did not answer may have lost its memory and its anchor: it gets the model next time.
            holders = {client: made for client, made in holders.items() if client in replies or client not in requests}
            try:
                requests = conversation.send(replies)
            except StopIteration as finished:
                inner, events = finished.value
                break
        fetched = yield from self._prefetch(state, cohort, holders)
        counts = {**events.counts, "anchors fetched": len(fetched)}
        return replace(state, inner=inner, holders={**holders, **fetched}), replace(events, counts=counts)

    def _publish(self, state: DoCoFlState, cohort: Cohort) -> DoCoFlState:
        if (cohort.round_number - 1) % self.config.anchor_every and state.anchors:
            return state
        # The server keeps the anchor as clients decode it, because corrections are relative to the decoded tensors. The
        # exact model (`source`) is what `_prefetch` sends through the same codec.
        source = self.broadcast(state).weights
        decoded = self.config.anchor.encode(source, source.schema, cohort.rng("anchor")).decode(source.schema)
        newest = Anchor(to_dense(decoded), cohort.round_number)
        return replace(state, anchors=(newest, *state.anchors)[: self.config.num_anchors], source=source)

    def _prefetch(self, state: DoCoFlState, cohort: Cohort, holders: dict[int, int]) -> Fetching:
        newest = state.anchors[0]
        soon = {client for ahead in cohort.look_ahead[: self.config.look_ahead] for client in ahead}
        lacking = sorted(client for client in soon if holders.get(client) != newest.round_number)
        if not lacking:
            return {}
        answer = Answer("prefetch", values={"digest": int})
        replies = yield dict.fromkeys(lacking, Message("prefetch", {"anchor": state.source}, answers=(answer,)))
        for client in lacking:  # the request may have replaced a client's old anchor, even if the reply was lost
            holders.pop(client, None)
        digest = _digest(newest.weights)
        agreed = [client for client, reply in replies.items() if reply.values["digest"] == digest]
        # One client with another digest merely gets no anchor. If no client at all agrees, the codecs do not match,
        # and DoCoFL would silently send dense models for the whole run.
        is_common = newest.round_number in holders.values()
        if replies and not agreed and not is_common:
            raise RunError(
                f"client {min(replies)} decodes another anchor than the server holds; downlink.anchor must be the "
                "codec of method.anchor, and must not draw at random"
            )
        return dict.fromkeys(agreed, newest.round_number)


@dataclass(frozen=True)
class DoCoFlClient(WrapperClient):
    """The client half: keeps an anchor, and passes anchor + correction to the inner half as the model."""

    def init(self) -> Fetched:
        """Return the state without an anchor."""
        return Fetched(self.inner.init(), None)

    def answer(self, request: Message, state: Fetched, trainer: LocalTrainer) -> tuple[Message, Fetched]:
        """Keep the anchor; or let the inner half answer, with anchor + correction as the model."""
        if request.kind == "prefetch":
            anchor = to_dense(request.groups["anchor"])
            return Message("prefetch", values={"digest": _digest(anchor)}), Fetched(state.inner, anchor)
        reply, inner = self.inner.answer(_restored(request, state.anchor), state.inner, trainer)
        return reply, Fetched(inner, state.anchor)

    def settle(self, state: Fetched, delivered: Message) -> Fetched:
        """Delegate to the inner half, except for the fetching of anchors."""
        if delivered.kind == "prefetch":
            return state
        return Fetched(self.inner.settle(state.inner, delivered), state.anchor)


def _corrected(requests: Requests, anchors: Mapping[int, Tensors], holders: Mapping[int, int]) -> Requests:
    """Return the requests with w_t - y_i instead of w_t where the client holds y_i; computed once per anchor."""
    known: dict[tuple[int, int], Tensors] = {}
    corrected = {}
    for client, request in requests.items():
        corrected[client] = request
        if client in holders and "model" in request.groups:
            groups = dict(request.groups)
            model, made = groups.pop("model"), holders[client]
            if (made, id(model)) not in known:
                known[made, id(model)] = sub(model, anchors[made])
            corrected[client] = replace(request, groups={"correction": known[made, id(model)], **groups})
    return corrected


def _restored(request: Message, anchor: Tensors | None) -> Message:
    if "correction" not in request.groups:
        return request
    if anchor is None:
        raise RunError("a client without an anchor received a correction")
    groups = dict(request.groups)
    model = add(anchor, groups.pop("correction"))
    return replace(request, groups={"model": model, **groups})


def _digest(anchor: Tensors) -> int:
    return crc32(anchor.values.tobytes())
