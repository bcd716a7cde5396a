"""What dense FedAvg costs: the reference of every saving and of every budget."""

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
    """What dense FedAvg costs one client in a round: field bytes, and the size of real envelopes."""

    def size(kind: str, main: str) -> int:
        parcels = {
            group: Dense().encode(zeros(schema.of_group(group)), schema.of_group(group), np.random.default_rng(0))
            for group in message_groups(schema, main)
        }
        return Envelope(kind, 1, 1, parcels=parcels).size()

    return Reference(schema.dense_bytes, size("train", "model"), size("update", "update"))


def message_groups(schema: ModelSchema, main: str) -> tuple[str, ...]:
    """The groups of a model or an update as it travels; those without tensors are left out."""
    parts = {main: schema.weights, "buffers": schema.buffers, "counters": schema.counters}
    return tuple(group for group, part in parts.items() if len(part))
