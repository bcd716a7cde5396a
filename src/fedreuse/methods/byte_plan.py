"""Byte plan: the division of a run's bytes between its messages, and the links that keep to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Literal

import msgpack
import numpy as np

from fedreuse.accounting.dense import dense_reference, evaluation_size, message_groups
from fedreuse.compression.codecs.allot import Allot
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.fit import Fit
from fedreuse.compression.codecs.low_rank import MOST_WEIGHTS, LowRank
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.by_client import ByClient
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.from_initial import FromInitial
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.header import describe_parcel
from fedreuse.compression.wire.limits import MAX_PARCELS
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import LinkContext
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.methods.line_budgets import Messages, longest_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedreuse.compression.wire.modes.narrow import Kind
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.message import Value
    from fedreuse.core.method import Link, Scope
    from fedreuse.core.schema import Schema

__all__ = ["Allowances", "BytePlan"]

Way = Literal["up", "down"]
_UP = 0.25
"""Share of the budget for the uplink."""
_VALUES: tuple[tuple[float, Kind | None], ...] = ((0.035, "int4"), (0.12, "int8"), (0.35, "fp16"), (1.0, None))
"""(largest share of the dense bytes, number format of the values) in increasing order."""
_FIRST_VALUES: tuple[tuple[float, Kind | None], ...] = ((0.045, "int4"), (0.12, "int8"), (0.35, "fp16"), (1.0, None))
"""The same for first differences, of which many coordinates are zero: short values reach further."""
_FIRST_SHARE, _FIRST_MOST = 0.1, 4.0
"""First differences: share of the downlink that they may add, and their largest multiple of an ordinary one."""
_LOST = 0.1
"""Share of the clients whose state may be lost once: their second first difference is planned, too."""
_LONGEST_LIST = 4
"""Bytes by which a list of many broadcasts is described longer than one of few."""


@dataclass(frozen=True)
class Allowances:
    """Bytes of single messages, headers included; those of a dense message mean that it is dense.

    Attributes:
        reply: Bytes of a reply.
        request: Bytes of a request that carries a difference, or of one broadcast.
        first: Bytes of a request that carries the first difference to a client.
    """

    reply: int
    request: int
    first: int


class BytePlan:
    """Division of a run's bytes between requests and replies, both as long as the format can make them at worst.

    Args:
        scope: The federation.
        is_shared: True if all clients receive the same broadcasts.
        is_stateless: True if every request is a difference to the initial model.
        values: Small values that every reply carries.
        low_rank: True if outer products are tried for every message, in models of at most four million weights.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        is_shared: bool,
        is_stateless: bool = False,
        values: Mapping[str, Value] | None = None,
        low_rank: bool = False,
    ) -> None:
        """Count the messages of the run."""
        self._tries_low_rank = low_rank and scope.schema.weights.size <= MOST_WEIGHTS
        self._is_stateless = is_stateless
        self._scope, self._schema, self._is_shared = scope, scope.schema, is_shared
        self._values = dict(values or {})
        self._dense = dense_reference(scope.schema)
        self._requests = scope.num_requests
        whole = 0 if scope.shares_initial else scope.clients
        if is_shared:  # a client that missed more broadcasts than a message can carry gets the dense model again
            # Upper bound: no such gap fits into the first MAX_PARCELS rounds, and each client can have one per
            # MAX_PARCELS + 1 rounds.
            rest = max(0, scope.rounds - 1 - MAX_PARCELS)
            whole += min(rest * scope.cohort, scope.clients * ((scope.rounds - 1) // (MAX_PARCELS + 1)))
        self._whole = min(whole, self._requests)
        """Requests that carry a dense model: first contacts, and long absences where broadcasts are shared."""
        self._free = min(scope.cohort if scope.shares_initial else 0, self._requests - self._whole)
        """Requests of round 1, which carry no weights."""
        self._later = self._requests - self._whole - self._free
        self._carrying = self._broadcasts() if is_shared else self._later
        """Differences that are sent: one in each later request, or each broadcast to all clients that may need it."""
        has_firsts = scope.shares_initial and not is_shared and not is_stateless
        late = scope.clients - scope.cohort if has_firsts else 0
        lost = ceil(_LOST * scope.clients) if has_firsts else 0
        self._evaluated = 0
        """Bytes of evaluation by all clients, at most; dense FedAvg sends the same."""
        if scope.evaluations is not None:
            self._evaluated = scope.clients * evaluation_size(scope.schema, scope.evaluations)
        self._first = min(late + lost, self._later)
        """First differences after round 1: to clients that are asked late, and to some that lose their state."""

    def _broadcasts(self) -> int:
        scope = self._scope
        return sum(min(scope.clients, left * scope.cohort) for left in range(1, scope.rounds))

    @cached_property
    def _least(self) -> tuple[int, int]:
        """Bytes of the smallest reply, and of the smallest request with a difference (or the smallest broadcast)."""
        return self._most_of_least("up"), self._most_of_least("down")

    @cached_property
    def _fixed(self) -> int:
        """Bytes that no codec can change: dense models, round 1, and the rest of messages with broadcasts."""
        around = self._requests * self._around_broadcasts if self._is_shared else self._free * self._least[1]
        return self._whole * self._dense.request_bytes + around

    @cached_property
    def _around_broadcasts(self) -> int:
        """Bytes of a request without a broadcast."""
        held = zeros(self._schema.weights)
        context = LinkContext(held.schema, 2, 0, np.random.default_rng(0))
        return self._message("down", Delta(start="initial").send(held, held, context)[0]).size() + _LONGEST_LIST

    @property
    def _both(self) -> int:
        return self._dense.request_bytes + self._dense.reply_bytes

    @cached_property
    def smallest(self) -> float:
        """Smallest possible budget, rounded up to four decimals."""
        whole = self._requests * self._both + self._evaluated
        return min(1.0, ceil(1e4 * (self._needed + self._evaluated) / whole) / 1e4)

    @property
    def _needed(self) -> int:
        """Bytes of the smallest messages of training."""
        reply, request = self._least
        return self._requests * reply + self._carrying * request + self._fixed

    def _beside(self, budget: float) -> float:
        """Return the bytes that evaluation takes from training, which has budget x (its dense bytes) without it.

        All messages are to take budget x (dense training + evaluation) bytes, and evaluation takes its own in full.
        """
        return (1 - budget) * self._evaluated

    def allowances(self, budget: float) -> Allowances:
        """Return the bytes of single messages; what one direction cannot use moves to the other.

        Raises:
            ConfigError: If the budget is above 1 or below the smallest possible one.
        """
        scope = self._scope
        if not self.smallest <= budget <= 1:
            raise ConfigError(
                f"method.budget must be from {self.smallest:g}, the smallest that this federation can reach "
                f"({scope.rounds} rounds, {scope.cohort} of {scope.clients} clients in each, "
                f"{scope.schema.dense_bytes:,} bytes of model{self._of_evaluation}), to 1, got {budget!r}"
                f"{self._way_out(budget)}"
            )
        request = self._dense.request_bytes
        least_up, least_down = self._least
        # The uplink first: a quarter of the budget, at least the smallest message; the downlink gets the rest.
        per_visit = budget * self._both - self._beside(budget) / self._requests
        wanted = max(_UP * per_visit, least_up)
        # Dense requests cost the same in every round, round 1 included, which is free otherwise.
        if per_visit - request >= wanted or budget == 1:
            reply = self._dense_reply(request)
            return Allowances(min(reply, int(per_visit - request)), request, request)
        reply = self._dense_reply(least_down)
        total = budget * self._requests * self._both - self._beside(budget) - self._fixed
        if not self._carrying:  # a single round: nothing but replies costs
            return Allowances(min(reply, int(total / self._requests)), least_down, least_down)
        down = min(max((total - wanted * self._requests) / self._carrying, least_down), request - 1)
        ordinary, first = self._divided(down)
        return Allowances(min(reply, int((total - down * self._carrying) / self._requests)), ordinary, first)

    @property
    def _of_evaluation(self) -> str:
        """The part of an error message about the number of evaluations."""
        evaluations = self._scope.evaluations
        return "" if evaluations is None else f", {evaluations.times} evaluations by all clients, test included"

    def _way_out(self, budget: float) -> str:
        """Return the part of an error message about evaluating less often."""
        evaluations = self._scope.evaluations
        if evaluations is None or budget >= 1:
            return ""
        room = (budget * self._requests * self._both - self._needed) / (1 - budget)
        most = int(room // (self._evaluated / evaluations.times))
        if most < 1:
            return "; its training alone, or its test at the end, takes more: raise the budget or rounds.count"
        return (
            f"; evaluation is in the budget, which has room for {most} of them: raise rounds.evaluate_every, or set "
            "task.validation: 0, which leaves the test"
        )

    def _dense_reply(self, request: int) -> int:
        """Return the bytes of a dense reply, which has the small values beside it unless requests are dense, too."""
        if request >= self._dense.request_bytes or not self._values:
            return self._dense.reply_bytes
        with_values, without = (Envelope("update", 1, 1, values=values).size() for values in (self._values, {}))
        return self._dense.reply_bytes + with_values - without

    def _divided(self, mean: float) -> tuple[int, int]:
        """Return the bytes of an ordinary and of a first difference, whose mean over the run is given.

        A first difference stands for all rounds so far, so it is larger, and the ordinary ones pay for it.
        """
        number, total = self._first, mean * self._carrying
        others = self._carrying - number
        if not number or not others:
            return int(mean), int(mean)
        ordinary = max((1 - _FIRST_SHARE) * mean, total / (others + _FIRST_MOST * number), self._least[1])
        first = min((total - others * ordinary) / number, self._dense.request_bytes - 1)
        return int((total - number * first) / others), int(first)

    def by_line(self, allowed: Allowances) -> tuple[Allowances, ...]:
        """Return the bytes of every client's messages: as many as its line can carry in a common time.

        Each direction keeps its sum of bytes, and a client's first difference is as long as its others. A dense
        direction stays dense.
        """
        lines, dense = self._scope.lines, self._dense
        is_known = all(line.visits is not None for line in lines)
        visits = [line.visits or 0 for line in lines] if is_known else None
        # requests of round 1 carry no weights
        later = None if visits is None else [n - line.is_first for n, line in zip(visits, lines, strict=True)]
        rounds = self._scope.rounds
        whole = self._dense_reply(allowed.request)
        up, down = ([whole] * len(lines), [dense.request_bytes] * len(lines))
        if allowed.reply < whole:
            messages = Messages(self._requests, visits, rounds)
            total, most = allowed.reply * self._requests, dense.reply_bytes - 1
            up = list(longest_messages([line.up for line in lines], messages, total, self._least[0], most)[0])
        if allowed.request < dense.request_bytes:
            messages = Messages(self._later, later, rounds)
            more = (allowed.first - allowed.request) * self._first
            total, most = allowed.request * self._later + more, dense.request_bytes - 1
            down = list(longest_messages([line.down for line in lines], messages, total, self._least[1], most)[0])
        return tuple(Allowances(*sizes) for sizes in zip(up, down, down, strict=True))

    def uplink(self, allowed: Allowances | Sequence[Allowances]) -> dict[str, Link]:
        """Return the links of replies, one or one per client; none if they are dense."""
        first = _all_of(allowed)[0]
        if first.reply >= self._dense_reply(first.request):
            return {}
        return {"update": _linked(allowed, self._reply_link), **self._statistics()}

    def downlink(self, allowed: Allowances | Sequence[Allowances]) -> dict[str, Link]:
        """Return the links of requests, one or one per client; none if they are dense."""
        if _all_of(allowed)[0].request >= self._dense.request_bytes:
            return {}
        return {"model": _linked(allowed, self._request_link), **self._statistics()}

    def _reply_link(self, allowed: Allowances) -> Link:
        return ErrorFeedback(self._fitting("up", allowed.reply))

    def _request_link(self, allowed: Allowances) -> Link:
        codec = self._fitting("down", allowed.request)
        if self._is_shared:
            return Broadcast(codec)
        if self._is_stateless:
            return FromInitial(codec)
        is_longer = allowed.first > allowed.request
        first = self._fitting("down", allowed.first, _FIRST_VALUES) if is_longer else None
        return Delta(codec, start="initial", first=first)

    def _statistics(self) -> dict[str, Link]:
        return {"buffers": Plain(Narrow(Dense(), "bf16"))} if len(self._schema.buffers) else {}

    def _fitting(self, way: Way, allowed: int, formats: Sequence[tuple[float, Kind | None]] = _VALUES) -> Fit:
        """Return the codec of the weights, which get the allowance minus header, statistics and counters."""
        size = self._schema.weights.dense_bytes
        for _, kind in reversed(formats):
            body = max(1, allowed - self._around(way, kind, allowed))
            # The format for this share of the dense bytes, or a shorter one if the least message does not fit in it.
            is_for = kind == next(kind for most, kind in formats if body <= most * size or most == 1)
            if kind == "int4" or (is_for and self._least_body(way, kind) <= body):
                break
        other = LowRank(min(1.0, body / size)) if self._tries_low_rank else None
        return Fit(Packed(_sparse(kind, min(1.0, 5 * body / size)), least=0), body, other)

    def _most_of_least(self, way: Way) -> int:
        """Return the largest size of the smallest message: one coordinate of each tensor."""
        return self._around(way, "int4", 1) + self._least_body(way, "int4")

    def _least_body(self, way: Way, kind: Kind | None) -> int:
        """Return the largest size of the arrays of one coordinate of each tensor."""
        # Packing shortens a block by an amount that depends on its numbers, and never lengthens it.
        return self._sample(way, kind).body_bytes

    def _around(self, way: Way, kind: Kind | None, allowed: int) -> int:
        """Return the bytes of a message, or of what a broadcast adds to it, without the arrays of its weights."""
        sample = self._sample(way, kind)
        described = describe_parcel(sample)
        # At worst every tensor is sparse, and its count as long as the allowance permits: a coordinate takes a bit.
        counts = [min(spec.size, 8 * allowed) for spec in self._schema.weights]
        notes = dict.fromkeys(sample.notes, (1 << 32) - 1) | ({} if kind is None else {"values": kind})
        longest = [bytes(len(counts)), counts, notes]
        return self._size(way, sample) - sample.body_bytes + _length(longest) - _length(described)

    def _sample(self, way: Way, kind: Kind | None) -> Parcel:
        """Return a parcel with one coordinate of each tensor."""
        codec = Fit(_sparse(kind), 1)
        return _sent(ErrorFeedback(codec) if way == "up" else Delta(codec, start="initial"), self._schema.weights)

    def _size(self, way: Way, parcel: Parcel) -> int:
        """Return the bytes of a message with this parcel of weights; of a broadcast, those that it adds."""
        size = self._message(way, parcel).size()
        if self._is_shared and way == "down":
            size -= self._message(way, None).size() - 1  # the marker of an absent parcel takes one byte
        return size

    def _message(self, way: Way, parcel: Parcel | None) -> Envelope:
        """Return a message with this parcel of weights."""
        kind, main = ("update", "update") if way == "up" else ("train", "model")
        others = self._statistics()
        parcels = {
            group: parcel if group == main else _sent(others.get(group, Plain()), self._schema.of_group(group))
            for group in message_groups(self._schema, main)
        }
        values = self._values if way == "up" else {}
        return Envelope(kind, self._scope.rounds, self._requests, parcels=parcels, values=values)


def _all_of(allowed: Allowances | Sequence[Allowances]) -> Sequence[Allowances]:
    return [allowed] if isinstance(allowed, Allowances) else allowed


def _linked(allowed: Allowances | Sequence[Allowances], link_of: Callable[[Allowances], Link]) -> Link:
    """Return one link for all clients, or each client's own; equal ones are stored once."""
    if isinstance(allowed, Allowances):
        return link_of(allowed)
    made = [link_of(one) for one in allowed]
    places = {link: place for place, link in enumerate(dict.fromkeys(made))}
    return ByClient(tuple(places), tuple(places[link] for link in made))


def _sent(link: Link, part: Schema) -> Parcel:
    """Return the parcel for normally distributed numbers, sent to a receiver that holds zeros.

    Sizes are measured on a sample parcel instead of being recomputed here, so they follow every change of the format.
    """
    drawn = Tensors(part, np.random.default_rng(0).normal(size=part.size).astype(part.dtype))
    context = LinkContext(part, 2, 0, np.random.default_rng(0), initial=zeros(part))
    parcel = link.send(drawn, None, context)[0]
    assert parcel is not None  # these links always send
    return parcel


def _sparse(kind: Kind | None, ratio: float = 1.0) -> Allot:
    """Return the codec with this number format; `fit` starts its search for the largest ratio at `ratio`."""
    return Allot(ratio, TopK() if kind is None else Narrow(TopK(), kind))


def _length(entry: object) -> int:
    """Return the bytes of an entry of a header."""
    return len(msgpack.packb(entry))
