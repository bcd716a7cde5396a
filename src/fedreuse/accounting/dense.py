"""Bytes of dense FedAvg, the reference of savings and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.tensors import zeros

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema

__all__ = ["dense_reference", "message_groups"]


def dense_reference(schema: ModelSchema) -> Reference:
    """Return the bytes of dense FedAvg per client and round: field bytes, and sizes of serialized envelopes."""

    def size(kind: str, main: str) -> int:
        parcels = {
            group: Dense().encode(zeros(schema.of_group(group)), schema.of_group(group), np.random.default_rng(0))
            for group in message_groups(schema, main)
        }
        return Envelope(kind, 1, 1, parcels=parcels).size()

    return Reference(schema.dense_bytes, size("train", "model"), size("update", "update"))


def message_groups(schema: ModelSchema, main: str) -> tuple[str, ...]:
    """Return the message groups of a model or an update; those without tensors are left out."""
    parts = {main: schema.weights, "buffers": schema.buffers, "counters": schema.counters}
    return tuple(group for group, part in parts.items() if len(part))
