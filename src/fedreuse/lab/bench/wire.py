"""Bytes of real messages by part and round, compared with two bounds.

    full width   k values of b bytes and log2 C(d, k) bits for a tensor of d coordinates, of which k are sent: the
                 best code without knowledge of values and positions
    entropy      the empirical entropy (order 0) of each byte plane of the values, sign rotated to the lowest bit,
                 tensor by tensor, and of the mask given the density of each row

A code with more knowledge can be below both. The messages are those of a run with any executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import lgamma, log
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.compression.wire.block import ABSENT
from fedreuse.compression.wire.masks import num_rows
from fedreuse.core.errors import WireError
from fedreuse.engine.executors.executor import ExecutorConfig, ExecutorWrapper

if TYPE_CHECKING:
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
    from fedreuse.core.tensors import Tensors
    from fedreuse.engine.executors.executor import Reply, RunExecutor, Site

__all__ = ["Share", "TensorShare", "Watch", "entropy_bytes", "full_width_bytes", "shares"]


@dataclass(frozen=True)
class TensorShare:
    """One tensor of one message: mode, sizes of its parts, and bounds; the entropy is nan if it cannot be decoded."""

    name: str
    mode: str
    size: int
    carried: int
    field_bytes: int
    mask_bytes: int
    value_bytes: int
    head_bytes: int
    full_width: float
    entropy: float


@dataclass(frozen=True)
class Share:
    """One message: modelled bytes of its fields, actual bytes, and its tensors."""

    round_number: int
    client: int
    direction: str
    kind: str
    field_bytes: int
    message_bytes: int
    tensors: tuple[TensorShare, ...]

    @property
    def share(self) -> float:
        """Bytes of the whole message over modelled bytes of its fields."""
        return self.message_bytes / self.field_bytes

    def total(self, part: str) -> float:
        """Return the sum of a number over the tensors."""
        return float(sum(getattr(tensor, part) for tensor in self.tensors))

    @property
    def header_bytes(self) -> float:
        """Bytes of frame, header, and heads of blocks."""
        return self.message_bytes - self.total("mask_bytes") - self.total("value_bytes")


@dataclass(eq=False)
class Watch(ExecutorConfig):
    """Wrapper of an executor's configuration that records the messages of some rounds."""

    inner: ExecutorConfig
    rounds: frozenset[int]
    found: list[Share] = field(default_factory=list)

    def start(self, site: Site) -> RunExecutor:
        """Start the wrapped executor, with recording."""
        return _Watched(self.inner.start(site), self, site.schema)


class _Watched(ExecutorWrapper):
    def __init__(self, inner: RunExecutor, watch: Watch, schema: ModelSchema) -> None:
        super().__init__(inner)
        self._watch, self._schema = watch, schema
        self._held: dict[tuple[int, int], Mapping[str, Tensors]] = {}
        self._seen: dict[int, Any] = {}

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        """Exchange messages with the wrapped executor, and record those of the chosen rounds."""
        wanted = {client: sent for client, sent in requests.items() if sent.round_number in self._watch.rounds}
        for client, sent in wanted.items():
            key = sent.round_number, client
            self._held[key] = {**self._held.get(key, {}), **self._decode(sent)}
            self._record(client, "down", sent, {})
        for reply in self._inner.exchange(requests):
            if reply.client in wanted:
                held = self._held[reply.envelope.round_number, reply.client]
                self._record(reply.client, "up", reply.envelope, {**held, "update": held.get("model")})
            yield reply
        self._seen.clear()

    def _decode(self, sent: Envelope) -> dict[str, Tensors]:
        """Decode the tensors of a request; a parcel that several clients share is decoded once."""
        tensors = {}
        for group, parcel in sent.parcels.items():
            if parcel is None:
                continue
            if id(parcel) not in self._seen:
                self._seen[id(parcel)] = parcel, parcel.decode(self._schema.of_group(group))
            tensors[group] = self._seen[id(parcel)][1]
        return tensors

    def _record(self, client: int, direction: str, message: Envelope, held: Mapping[str, Tensors | None]) -> None:
        if message.field_bytes:
            self._watch.found.append(shares(client, direction, message, self._schema, held))


def shares(
    client: int, direction: str, message: Envelope, schema: ModelSchema, held: Mapping[str, Tensors | None]
) -> Share:
    """Return the bytes of a message by part."""
    tensors = [
        tensor
        for group, parcel in message.parcels.items()
        if parcel is not None
        for tensor in _tensors(parcel, schema.of_group(group), held.get(group))
    ]
    return Share(
        message.round_number, client, direction, message.kind, message.field_bytes, message.size(), tuple(tensors)
    )


def full_width_bytes(size: int, carried: int, width: int) -> float:
    """Return the bytes of k values at full width and log2 C(d, k) bits."""
    ways = (lgamma(size + 1) - lgamma(carried + 1) - lgamma(size - carried + 1)) / log(2)
    return carried * width + ways / 8


def entropy_bytes(positions: np.ndarray | None, values: np.ndarray, spec: TensorSpec) -> float:
    """Return the order-0 entropy of the byte planes of the values and of the mask by rows, in bytes."""
    patterns = values.view(f"<u{values.dtype.itemsize}")
    rotated = patterns << 1 | patterns >> (8 * values.dtype.itemsize - 1)
    planes = rotated.view(np.uint8).reshape(-1, values.dtype.itemsize)
    of_values = sum(_entropy(np.bincount(plane)) for plane in planes.T) if len(values) else 0.0
    if positions is None or not spec.size:
        return of_values / 8
    rows = num_rows(spec)
    width = spec.size // rows
    marked = np.bincount(positions // width, minlength=rows)
    return (of_values + sum(_entropy(np.array([count, width - count])) for count in marked)) / 8


def _entropy(counts: np.ndarray) -> float:
    """Return the bits of all symbols together."""
    used = counts[counts > 0]
    return float((used * np.log2(counts.sum() / used)).sum())


def _tensors(parcel: Parcel, schema: Schema, held: Tensors | None) -> Iterator[TensorShare]:
    decoded = _pieces(parcel, schema, held)
    for spec, block, piece in zip(schema, parcel.blocks, decoded, strict=True):
        if block.mode is ABSENT:
            continue
        entropy = float("nan") if piece is None else entropy_bytes(*piece, spec)
        mask, head = block.mask_bytes, block.head_bytes
        yield TensorShare(
            spec.name, block.mode.name, spec.size, block.count, block.field_bytes, mask,
            block.body_bytes - mask - head, head, full_width_bytes(spec.size, block.count, spec.width), entropy,
        )  # fmt: skip


def _pieces(parcel: Parcel, schema: Schema, held: Tensors | None) -> list[tuple[np.ndarray | None, np.ndarray] | None]:
    """Return positions and values of each block; None where they cannot be decoded."""
    try:
        decoded = parcel.decode(schema, held)
    except WireError:
        return [None] * len(schema)
    starts = schema.offsets
    if decoded.schema != schema:
        return [None] * len(schema)
    if decoded.index is None:
        return [(None, decoded.values[start:end]) for start, end in pairwise(starts)]
    cuts = np.searchsorted(decoded.index, starts)
    return [
        (decoded.index[low:high] - start, decoded.values[low:high])
        for low, high, start in zip(cuts, cuts[1:], starts, strict=False)
    ]
