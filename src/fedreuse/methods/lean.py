"""Lean: FedAvg within a byte budget for the whole run and both directions, as a share of dense FedAvg's bytes.

S     = request + reply of dense FedAvg, in bytes; N = rounds * cohort requests
B     = budget * N * S                                 the bytes of the run
u     = budget * S / 4                                 a reply
d     = (B - N u - F) / M                              a request that carries a difference; M of them
F, M  = cost of the first contacts, and number of other requests: round 1 carries no weights where both ends build the
        initial model; otherwise the first request to every client is dense

up    error_feedback(fit(u, C(u)))                     down    delta(fit(d, C(d)), start: initial)

With `server_memory: shared` the downlink is broadcast(fit(b, C(b))), and a request carries every broadcast that its
client missed. The broadcast of round t is sent at most once to each client that takes part from round t on:

M     = min(clients, cohort) + min(clients, 2 cohort) + ... + min(clients, (rounds - 1) cohort)
b     = (B - N u - F) / M                              a broadcast; F is the size of N requests without one

C is `allot`, packed; its rounding follows from the share of the weights' dense bytes that a message may take. Running
statistics are sent as bf16. The evaluated model is a moving average of the models, which reduces noise and costs no
bytes. Where the budget allows a dense message, the link is dense and without memory: at budget 1 both directions are
dense and nothing is averaged, which is FedAvg.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.accounting.dense import dense_reference, message_groups
from fedreuse.compression.codecs.allot import Allot
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.fit import Fit
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.limits import MAX_PARCELS
from fedreuse.core.errors import ConfigError, require
from fedreuse.core.method import LinkContext, Resolved
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.methods.alias import Alias, alias
from fedreuse.methods.aliases import FedAvg, FedAvgM
from fedreuse.methods.server_steps.moving_average import MovingAverageStep

if TYPE_CHECKING:
    from fedreuse.compression.codecs.codec import Codec
    from fedreuse.compression.wire.modes.narrow import Kind
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.method import Link, Scope
    from fedreuse.core.schema import Schema
    from fedreuse.methods.averaging import Averaging

__all__ = ["Lean"]

_UP = 0.25
"""Share of the budget for the uplink."""
_VALUES: tuple[tuple[float, Kind | None], ...] = ((0.035, "int4"), (0.12, "int8"), (0.35, "fp16"), (1.0, None))
"""(largest share of the dense bytes, number format of the values) in increasing order."""


@alias("lean")
@dataclass(frozen=True)
class Lean(Alias):
    """FedAvg within a byte budget: all links follow from it, once the federation is known.

    Args:
        budget: Bytes of all messages of the run, both directions together, as a share of dense FedAvg's, in
            (0, 1]; 1 is dense FedAvg. A federation of few rounds or a tiny model has a smallest budget, which
            the error names.
        momentum: Server momentum, in [0, 1); costs no bytes. 0 is FedAvg's step.
        moving_average: Weight of the last average in the model that is evaluated and deployed, in [0, 1); costs no
            bytes. 0 evaluates the last model, as FedAvg does.
        server_memory: `per_client`: the server stores the model that each client holds, one vector per client.
            `shared`: it stores one vector and the last broadcasts, for any number of clients; a client that was absent
            receives all broadcasts that it missed, so broadcasts are smaller by about clients / cohort.

    Raises:
        ConfigError: Once the federation is known, if the budget is above 1 or below the smallest possible one.

    Example: `method: {name: lean, budget: 0.02}`.
    """

    budget: float = 0.02
    momentum: float = 0.0
    moving_average: float = 0.7
    server_memory: Literal["per_client", "shared"] = "per_client"

    def __post_init__(self) -> None:
        """Check the ranges; that of the budget depends on the federation."""
        for name in ("momentum", "moving_average"):
            require(0 <= getattr(self, name) < 1, f"method.{name} must be in [0, 1)", getattr(self, name))
        super().__post_init__()

    @property
    def _fedavg(self) -> FedAvg | FedAvgM:
        return FedAvgM(1.0, self.momentum) if self.momentum else FedAvg()

    def expand(self) -> Averaging:
        """Return averaging without links, which depend on the federation."""
        averaging = self._fedavg.expand()
        if not self.moving_average:
            return averaging
        return replace(averaging, step=MovingAverageStep(self.moving_average, averaging.step))

    def smallest_budget(self, scope: Scope) -> float:
        """Return the smallest budget that a federation can reach, rounded up to four decimals."""
        return _Plan(scope, is_shared=self.server_memory == "shared").smallest

    def resolve(self, scope: Scope) -> Resolved:
        """Return FedAvg with the links that keep to the budget."""
        plan = _Plan(scope, is_shared=self.server_memory == "shared")
        if not plan.smallest <= self.budget <= 1:
            raise ConfigError(
                f"method.budget must be from {plan.smallest:g}, the smallest that this federation can reach "
                f"({scope.rounds} rounds, {scope.cohort} of {scope.clients} clients in each, "
                f"{scope.schema.dense_bytes:,} bytes of model), to 1, got {self.budget!r}"
            )
        up, down = plan.allowances(self.budget)
        uplink, downlink = plan.uplink(up), plan.downlink(down)
        # Averaging removes the noise of lossy links; without them the method must be exactly FedAvg.
        is_lossy = bool(uplink or downlink)
        return Resolved(self.expand() if is_lossy and self.moving_average else self._fedavg, uplink, downlink)


class _Plan:
    """Division of a run's bytes between requests and replies."""

    def __init__(self, scope: Scope, *, is_shared: bool) -> None:
        self._scope, self._schema, self._is_shared = scope, scope.schema, is_shared
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
        self._free = scope.cohort if scope.shares_initial else 0
        """Requests of round 1, which carry no weights."""
        self._later = self._requests - self._whole - self._free
        self._carrying = self._broadcasts() if is_shared else self._later
        """Differences that are sent: one in each later request, or each broadcast to all clients that may need it."""

    def _broadcasts(self) -> int:
        scope = self._scope
        return sum(min(scope.clients, left * scope.cohort) for left in range(1, scope.rounds))

    @cached_property
    def _least(self) -> tuple[int, int]:
        """Bytes of the smallest reply, and of the smallest request with a difference (or the smallest broadcast)."""
        return self._size("up", self._link("up", 1)), self._size("down", self._link("down", 1))

    @property
    def _fixed(self) -> int:
        """Bytes that no codec can change: dense models, round 1, and the rest of messages with broadcasts."""
        around = self._requests * self._around_broadcasts if self._is_shared else self._free * self._least[1]
        return self._whole * self._dense.request_bytes + around

    @cached_property
    def _around_broadcasts(self) -> int:
        """Bytes of a request without a broadcast."""
        held = zeros(self._schema.weights)
        context = LinkContext(held.schema, 2, 0, np.random.default_rng(0))
        return self._message("down", Delta(start="initial").send(held, held, context)[0]).size()

    @property
    def _both(self) -> int:
        return self._dense.request_bytes + self._dense.reply_bytes

    @cached_property
    def smallest(self) -> float:
        """Smallest possible budget, rounded up to four decimals."""
        up, down = self._least
        needed = self._requests * up + self._carrying * down + self._fixed
        return min(1.0, ceil(1e4 * needed / (self._requests * self._both)) / 1e4)

    def allowances(self, budget: float) -> tuple[int, int]:
        """Return the bytes of a reply and of a request; surplus and deficit of one direction move to the other."""
        request, reply = self._dense.request_bytes, self._dense.reply_bytes
        least_up, least_down = self._least
        total = budget * self._requests * self._both
        # The uplink first: a quarter of the budget, at least the smallest message; the downlink gets the rest.
        up = max(_UP * budget * self._both, least_up)
        left = total - up * self._requests
        down = max((left - self._fixed) / max(1, self._carrying), least_down)
        # A run of one round consists of first contacts: they are dense if that fits, and otherwise carry no weights.
        affords_dense = (
            down >= request * self._later / self._carrying if self._carrying else left >= request * self._requests
        )
        # Dense requests take their full size and no more; the rest of the budget goes to the replies.
        if affords_dense:
            return min(reply, int(total / self._requests - request)), request
        if not self._carrying:
            down = least_down
        return min(reply, int((total - self._fixed - down * self._carrying) / self._requests)), int(down)

    def uplink(self, allowed: int) -> dict[str, Link]:
        """Return the links of replies of at most `allowed` bytes."""
        if allowed >= self._dense.reply_bytes:
            return {}
        return {"update": self._link("up", allowed), **self._statistics()}

    def downlink(self, allowed: int) -> dict[str, Link]:
        """Return the links of requests of at most `allowed` bytes."""
        if allowed >= self._dense.request_bytes:
            return {}
        link = self._link("down", allowed)
        return {"model": Broadcast(link.codec) if self._is_shared else link, **self._statistics()}

    def _statistics(self) -> dict[str, Link]:
        return {"buffers": Plain(Narrow(Dense(), "bf16"))} if len(self._schema.buffers) else {}

    def _link(self, way: str, allowed: int) -> ErrorFeedback | Delta:
        """Return the link of the weights, which get the allowance minus header, statistics and counters."""
        # The codec and its rounding depend on the bytes left for the weights, so the rest is measured first.
        empty = self._around(way, Fit(bytes=1))
        body = max(1, allowed - self._size(way, empty, with_weights=False))
        return self._around(way, Fit(_codec(body / self._schema.weights.dense_bytes), body))

    @staticmethod
    def _around(way: str, codec: Codec) -> ErrorFeedback | Delta:
        return ErrorFeedback(codec) if way == "up" else Delta(codec, start="initial")

    def _size(self, way: str, link: Link, *, with_weights: bool = True) -> int:
        """Return the bytes of a message with this link, or of all but its weights; of a broadcast, those it adds."""
        parcel = _sent(link, self._schema.weights)
        size = self._message(way, parcel).size()
        if self._is_shared and way == "down":
            size -= self._message(way, None).size() - 1  # the marker of an absent parcel takes one byte
        # The number of values per tensor is a varint, which may take two bytes more than in this sample.
        return size if with_weights else size - parcel.body_bytes + 2 * len(self._schema.weights)

    def _message(self, way: str, parcel: Parcel | None) -> Envelope:
        """Return a message with this parcel of weights."""
        kind, main = ("update", "update") if way == "up" else ("train", "model")
        others = self._statistics()
        parcels = {
            group: parcel if group == main else _sent(others.get(group, Plain()), self._schema.of_group(group))
            for group in message_groups(self._schema, main)
        }
        return Envelope(kind, self._scope.rounds, self._requests, parcels=parcels)


def _sent(link: Link, part: Schema) -> Parcel:
    """Return the parcel for normally distributed numbers, sent to a receiver that holds zeros.

    Sizes are measured on a sample parcel instead of being recomputed here, so they follow every change of the format.
    """
    drawn = Tensors(part, np.random.default_rng(0).normal(size=part.size).astype(part.dtype))
    context = LinkContext(part, 2, 0, np.random.default_rng(0), initial=zeros(part))
    parcel = link.send(drawn, None, context)[0]
    assert parcel is not None  # these links always send
    return parcel


def _codec(share: float) -> Codec:
    """Return the codec for a share of the dense bytes; `fit` starts its search for the largest ratio at this one."""
    values = next(values for most, values in _VALUES if share <= most or most == 1)
    return Packed(Allot(min(1.0, 5 * share), TopK() if values is None else Narrow(TopK(), values)), least=0)
