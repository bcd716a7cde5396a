"""Well-formed but unexpected replies of every kind, and an executor that delivers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.block import ABSENT, absent_block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.engine.executors.executor import ExecutorConfig, ExecutorWrapper, Reply, RunExecutor, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import ListedFault
from fedreuse.testing.conformance.sessions import drawn
from fedreuse.testing.quadratic import quadratic_schema

__all__ = ["Spoiling", "ways_to_spoil"]


@dataclass(frozen=True)
class Spoiling(ExecutorConfig):
    """A serial executor that spoils all but one reply of an exchange, in every possible way."""

    ways: dict[tuple[int, int], str] = field(default_factory=dict)
    """The way that was tried, by exchange and client."""
    faults: list[ListedFault] = field(default_factory=list)

    def start(self, site: Site) -> RunExecutor:
        """Start the executor."""
        return _SpoilingExecutor(Serial().start(site), self)

    def spoil(self, reply: Reply, number: int) -> Reply:
        """Return a spoiled reply, by the first of the ways that were tried least."""
        envelope, tried = reply.envelope, Counter(self.ways.values())
        ways = {f"{envelope.kind} {way}": spoiled for way, spoiled in ways_to_spoil(envelope).items()}
        way = min(ways, key=lambda way: tried[way])
        self.ways[envelope.exchange, reply.client] = way
        self.faults.append(ListedFault(envelope.round_number, reply.client, "lost", number))
        return replace(reply, envelope=ways[way])


class _SpoilingExecutor(ExecutorWrapper):
    def __init__(self, inner: RunExecutor, how: Spoiling) -> None:
        super().__init__(inner)
        self._how, self._number = how, 0

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        self._number += 1
        replies = list(self._inner.exchange(requests))
        # At least one honest reply per round: a round in which every reply is refused ends the run.
        honest = replies[replies[0].envelope.exchange % len(replies)] if len(replies) > 1 or self._number == 1 else None
        return (reply if reply is honest else self._how.spoil(reply, self._number) for reply in replies)

    def end_round(self, acks: Mapping[int, int]) -> None:
        self._number = 0
        super().end_round(acks)


def ways_to_spoil(reply: Envelope) -> dict[str, Envelope]:
    """Return well-formed variants of a reply that no request expects, by their defect."""
    more = Dense().encode(drawn(1), quadratic_schema().weights, np.random.default_rng(0))
    parcels, values = reply.parcels, reply.values
    ways = {"of another kind": replace(reply, kind=f"no {reply.kind}")}
    ways |= {f"without {group}": replace(reply, parcels=_without(parcels, group)) for group in parcels}
    ways |= {f"without {name}": replace(reply, values=_without(values, name)) for name in values}
    ways |= {f"with a word for {name}": replace(reply, values={**values, name: "word"}) for name in values}
    ways["with one group more"] = replace(reply, parcels={**parcels, "more": more})
    ways["with one value more"] = replace(reply, values={**values, "more": 1.0})
    for group, parcel in parcels.items():
        if parcel is not None:
            at = next(at for at, block in enumerate(parcel.blocks) if block.mode is not ABSENT)
            short = replace(parcel, blocks=(*parcel.blocks[:at], absent_block(), *parcel.blocks[at + 1 :]))
            ways[f"without a tensor of {group}"] = replace(reply, parcels={**parcels, group: short})
    return ways


def _without(named: Mapping[str, Any], gone: str) -> dict[str, Any]:
    return {name: entry for name, entry in named.items() if name != gone}
