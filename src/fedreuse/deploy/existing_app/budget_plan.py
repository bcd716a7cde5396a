"""Links that keep a strategy's messages within a budget in each direction, as a share of what it sends without them.

up      u = budget * reply                                    every reply of a training round
down    D = budget * rounds * (train + evaluate) * request    the bytes of a run
        F                                                     a first contact: all weights, rounded
        d = (D - nodes * F) / V                               a difference; V of them

A node gets one difference for each model, with the first message that carries it: if a node evaluates the model of a
round and then trains it, the training request carries nothing. V is the expected number of nodes that get a model, for
all rounds. Sizes are measured on sample messages.

On real nodes the budget counts Flower's requests, too. With S bytes of records and A of Flower in a direction without
compression, and C of Flower with it, records get

        max(budget * (S + A) - C, budget * S * 0.3)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.dense import dense_reference, message_groups
from fedreuse.compression.codecs.allot import Allot
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.fit import Fit
from fedreuse.compression.codecs.low_rank import MOST_WEIGHTS, LowRank
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, require
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.deploy.flower.own_traffic import OwnTraffic

if TYPE_CHECKING:
    from fedreuse.compression.codecs.codec import Codec
    from fedreuse.compression.wire.modes.narrow import Kind
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.method import Link
    from fedreuse.core.schema import ModelSchema

__all__ = ["BudgetPlan", "Exchanges"]

_VALUES: tuple[tuple[float, Kind | None], ...] = ((0.035, "int4"), (0.12, "int8"), (0.35, "fp16"), (1.0, None))
"""(largest share of the dense bytes, number format of the values) in increasing order."""
_FIRST: tuple[tuple[Kind | None, float], ...] = ((None, 0.1), ("bf16", 0.1), ("int8", 0.5), ("int4", 0.9))
"""(format of a first contact, largest share of the downlink's bytes for it), from fine to coarse."""
_SAMPLE = 20_000
_FRAME = 160
"""Bytes of a frame around an envelope: run, client, names of records, and an envelope without groups."""
_LEAST_RECORDS = 0.3
"""Share of a budget that records get at least, however much Flower takes."""
_WAIT_SECONDS = 12.0
"""Assumed wait of a node for its next message, in which it polls."""
_START_SECONDS = 30.0
"""Assumed wait of a node for its first message."""
_APP = 10_000
"""Assumed bytes of the app, which every node downloads once."""
_AGREEMENT = 600
"""Bytes of the agreement and of the first question, apart from the names of tensors."""


@dataclass(frozen=True)
class Exchanges:
    """Messages of a run: its nodes and rounds, and how many nodes train and evaluate in a round."""

    nodes: int
    rounds: int
    train: int
    evaluate: int
    is_joined: bool = False
    """True if a node evaluates and trains in one exchange."""
    is_on_wire: bool = False
    """True if Flower's requests count."""

    @property
    def expected(self) -> float:
        """Expected number of exchanges of all nodes."""
        both = self.evaluate * self.train / self.nodes if self.is_joined else 0.0
        return self.rounds * (self.train + self.evaluate - both) + both

    @property
    def models_sent(self) -> float:
        """Expected number of pairs of a model and a node that gets it."""
        idle = (1 - min(1.0, self.train / self.nodes)) * (1 - min(1.0, self.evaluate / self.nodes))
        return self.rounds * self.nodes * (1 - idle)

    @property
    def replies_per_node(self) -> float:
        """Expected number of a node's replies of training rounds."""
        return self.rounds * self.train / self.nodes


@dataclass(frozen=True)
class BudgetPlan:
    """Division of a budget.

    Args:
        budget: Share of the bytes that the strategy sends without compression, in each direction, in (0, 1].
        schema: Schema of the model.
        exchanges: Messages of the run.
        low_rank: True if outer products are tried for every message, in models of at most four million weights.

    Raises:
        ConfigError: The budget is out of range, or below the smallest possible one.
    """

    budget: float
    schema: ModelSchema
    exchanges: Exchanges
    low_rank: bool = False

    def __post_init__(self) -> None:
        """Check the budget."""
        require(0 < self.budget <= 1, "budget must be above 0 and at most 1", self.budget)
        if self.budget < 1 and any(self._records(way) < 0.999999 * least for way, least in self._least.items()):
            plan = self.exchanges
            raise ConfigError(
                f"budget must be at least {self.smallest:.4f} in this run ({plan.rounds} rounds, {plan.train} of "
                f"{plan.nodes} nodes train and {plan.evaluate} evaluate in each, {self.schema.dense_bytes:,} bytes of "
                f"model, of which the first contacts alone take {plan.nodes * self.first_bytes('int4'):,.0f}), got "
                f"{self.budget!r}; raise the budget or the number of rounds"
            )

    @property
    def smallest(self) -> float:
        """Smallest possible budget: the coarsest first contact, and one coordinate of each tensor in every message."""
        return min(1.0, max(self._budget(way, least) for way, least in self._least.items()))

    @cached_property
    def _least(self) -> dict[str, float]:
        """Smallest possible share of the bytes of records, by direction."""
        least_up, least_down = self._size("up", _up(Fit(bytes=1))), self._size("down", _down(Fit(bytes=1), None))
        least_up += _FRAME
        first = self.exchanges.nodes * self.first_bytes("int4") / _FIRST[-1][1]
        down = max(first, first * _FIRST[-1][1] + least_down * self.exchanges.models_sent) + self._frames
        return {"up": min(1.0, least_up / self._dense.reply_bytes), "down": min(1.0, down / self._down_bytes(1.0))}

    def _records(self, way: str, budget: float | None = None) -> float:
        """Return the share of the bytes of records that a budget leaves in a direction."""
        budget = self.budget if budget is None else budget
        alone, with_links = self._added[way]
        return budget if budget == 1 else max(budget * (1 + alone) - with_links, _LEAST_RECORDS * budget, 0.0)

    def _budget(self, way: str, records: float) -> float:
        """Return the budget that leaves a share for records: the inverse of `_records`."""
        alone, with_links = self._added[way]
        if not with_links:
            return records
        return min((records + with_links) / (1 + alone), records / _LEAST_RECORDS)

    @cached_property
    def _added(self) -> dict[str, tuple[float, float]]:
        """Bytes of Flower's requests as a share of those of records, without compression and with it, by direction."""
        plan = self.exchanges
        if not plan.is_on_wire:
            return {"up": (0.0, 0.0), "down": (0.0, 0.0)}
        arrays = 2 * sum(len(part) for part in (self.schema.weights, self.schema.buffers, self.schema.counters))
        train, evaluate = plan.rounds * plan.train, plan.rounds * plan.evaluate
        ours = round(plan.expected) + plan.nodes  # a node is first asked whether it holds the model
        # objects of a message: itself, its dictionary, and two records with the arrays, or one of numbers, or a frame
        up = train * (4 + arrays) + evaluate * 3
        alone = OwnTraffic(train + evaluate, train + evaluate, (train + evaluate) * (4 + arrays), up)
        with_links = OwnTraffic(ours, ours, 3 * ours, 3 * ours)
        for own, exchanges in ((alone, train + evaluate), (with_links, ours)):
            own.idle_seconds = {0: _START_SECONDS * plan.nodes + _WAIT_SECONDS * exchanges}
        added = [own.estimate(dict.fromkeys(range(plan.nodes), 0.0)) for own in (alone, with_links)]
        for sizes in added:
            sizes["down"] += _APP * plan.nodes
        records = {"up": train * self._dense.reply_bytes, "down": self._down_bytes(1.0)}
        return {way: (added[0][way] / size, added[1][way] / size) for way, size in records.items()}

    def expected_share(self, way: str) -> float:
        """Return the expected share of the bytes that cross in a direction."""
        alone, with_links = self._added[way]
        return (self._records(way) + with_links) / (1 + alone)

    @property
    def coverage(self) -> float:
        """Expected number of times that a node sends each coordinate of its updates in the run."""
        return self.exchanges.replies_per_node * _kept(self._records("up"))

    def overhead_hint(self) -> str | None:
        """Return a warning about a budget that Flower's own requests exceed; else None."""
        missed = {way: share for way in ("up", "down") if (share := self.expected_share(way)) > 1.05 * self.budget}
        if not missed or self.budget == 1:
            return None
        shares = " and ".join(f"{share:.1%} {way}" for way, share in missed.items())
        return (
            f"Flower's own requests take so many bytes beside a model of {self.schema.dense_bytes:,} bytes that about "
            f"{shares} will cross instead of {self.budget:.1%}; messages of the app alone keep to the budget"
        )

    def hint(self) -> str | None:
        """Return a warning about a budget that is too small to train in these rounds, with a way out; else None."""
        if self.coverage >= 1:
            return None
        rounds, kept = int(np.ceil(self.exchanges.rounds / self.coverage)), _kept(self._records("up"))
        low, high = self.budget, 1.0
        while high / low > 1.05:
            middle = (low * high) ** 0.5
            is_enough = self.exchanges.replies_per_node * _kept(self._records("up", middle)) >= 1
            low, high = (low, middle) if is_enough else (middle, high)
        return (
            f"a budget of {self.budget:g} lets a node send {kept:.1%} of its update in a round, so that "
            f"in {self.exchanges.rounds} rounds most coordinates never arrive and the model can stay near its start; "
            f"use at least {rounds} rounds, or a budget of at least {high:.2g}"
        )

    def uplink(self) -> dict[str, Link]:
        """Return the links of replies."""
        if self.budget == 1:
            return {}
        allowed = int(self._records("up") * self._dense.reply_bytes) - _FRAME
        return {"update": _up(self._fitting("up", allowed)), **self._statistics}

    def downlink(self) -> dict[str, Link]:
        """Return the links of requests."""
        kind = self.first_kind
        left = self._down_bytes(self._records("down")) - self.exchanges.nodes * self.first_bytes(kind) - self._frames
        allowed = int(left / self.exchanges.models_sent)
        if self.budget == 1 or allowed >= self._dense.request_bytes:
            return {}
        return {"model": _down(self._fitting("down", allowed), _whole(kind)), **self._statistics}

    @property
    def first_kind(self) -> Kind | None:
        """Number format of a first contact: the finest that leaves enough bytes for differences; None: lossless."""
        down = self._down_bytes(self._records("down"))
        fitting = [kind for kind, most in _FIRST if self.exchanges.nodes * self.first_bytes(kind) <= most * down]
        return fitting[0] if fitting else "int4"

    def first_bytes(self, kind: Kind | None) -> float:
        """Return the bytes of a first contact in a number format, estimated from a sample of normal numbers."""
        part = Schema((TensorSpec("w", (_SAMPLE,), str(self.schema.weights.dtype)),))
        codec = _whole(kind) or Packed(Dense(), 0)
        share = _encoded(codec, part).body_bytes / part.dense_bytes
        return share * self.schema.weights.dense_bytes + self._rest("down")

    def _down_bytes(self, budget: float) -> float:
        plan = self.exchanges
        return budget * plan.rounds * (plan.train + plan.evaluate) * self._dense.request_bytes

    @property
    def _frames(self) -> float:
        """Bytes of the agreements, and of the frames of all requests."""
        plan, names = self.exchanges, sum(len(spec.name) + 16 for spec in self.schema.weights)
        return plan.nodes * (_AGREEMENT + names) + plan.rounds * (plan.train + plan.evaluate) * _FRAME

    @cached_property
    def _dense(self) -> Reference:
        return dense_reference(self.schema)

    @property
    def _statistics(self) -> dict[str, Link]:
        return {"buffers": Plain(Narrow(Dense(), "bf16"))} if len(self.schema.buffers) else {}

    def _fitting(self, way: str, allowed: int) -> Fit:
        body = max(1, allowed - self._rest(way))
        share, is_tried = body / self.schema.weights.dense_bytes, self.schema.weights.size <= MOST_WEIGHTS
        other = LowRank(min(1.0, share)) if self.low_rank and is_tried else None
        return Fit(_codec(share), body, other)

    def _rest(self, way: str) -> int:
        """Return the bytes of a message around the values of its weights."""
        link = _up(Fit(bytes=1)) if way == "up" else _down(Fit(bytes=1), None)
        # the number of values per tensor is a varint, which may take two bytes more than in this sample
        return self._size(way, link) - _sent(link, self.schema.weights).body_bytes + 2 * len(self.schema.weights)

    def _size(self, way: str, link: Link) -> int:
        main = "update" if way == "up" else "model"
        links = {main: link, **self._statistics}
        parcels = {
            group: _sent(links.get(group, Plain()), self.schema.of_group(group))
            for group in message_groups(self.schema, main)
        }
        return Envelope("train", 1, 1, parcels=parcels).size()


def _up(codec: Codec) -> Link:
    return ErrorFeedback(codec)


def _down(codec: Codec, whole: Codec | None) -> Link:
    return Delta(codec, start="initial", whole=whole)


def _whole(kind: Kind | None) -> Codec | None:
    return None if kind is None else Packed(Narrow(Dense(), kind), 0)


def _codec(share: float) -> Codec:
    """Return the codec for a share of the dense bytes; `fit` starts its search for the largest ratio at this one."""
    values = next(values for most, values in _VALUES if share <= most or most == 1)
    return Packed(Allot(min(1.0, 5 * share), TopK() if values is None else Narrow(TopK(), values)), least=0)


def _kept(share: float) -> float:
    """Return the share of coordinates that fit into a share of the dense bytes, for normal numbers."""
    part = Schema((TensorSpec("w", (_SAMPLE,)),))
    decoded = _encoded(Fit(_codec(share), max(1, int(share * part.dense_bytes))), part).decode(part)
    return float(np.count_nonzero(decoded.values)) / _SAMPLE


def _encoded(codec: Codec, part: Schema) -> Parcel:
    return codec.encode(_drawn(part), part, np.random.default_rng(0))


def _sent(link: Link, part: Schema) -> Parcel:
    """Return the parcel for normal numbers, sent to a receiver that holds zeros."""
    zeros = Tensors(part, np.zeros(part.size, part.dtype))
    parcel = link.send(_drawn(part), None, LinkContext(part, 2, 0, np.random.default_rng(0), initial=zeros))[0]
    assert parcel is not None  # these links always send
    return parcel


def _drawn(part: Schema) -> Tensors:
    return Tensors(part, np.random.default_rng(0).normal(size=part.size).astype(part.dtype))
