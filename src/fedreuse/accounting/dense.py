"""Bytes of dense FedAvg, the reference of savings and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.tensors import zeros

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.message import Value
    from fedreuse.core.method import Evaluations
    from fedreuse.core.schema import ModelSchema

__all__ = ["dense_reference", "evaluation_size", "message_groups"]


def dense_reference(schema: ModelSchema) -> Reference:
    """Return the bytes of dense FedAvg per client and round: field bytes, and sizes of serialized envelopes."""
    train, update = (_dense(kind, main, schema).size() for kind, main in (("train", "model"), ("update", "update")))
    return Reference(schema.dense_bytes, train, update)


def evaluation_size(schema: ModelSchema, evaluations: Evaluations) -> int:
    """Return the most bytes that evaluations by one client take in a run, both directions together.

    The model is sent dense whatever the method, because clients evaluate the one that will be deployed.
    """
    request = _dense("evaluate", "model", schema, {"model": "received", "split": "validation"})
    return evaluations.times * (request.size() + Envelope("evaluate", 1, 1, values=evaluations.answer).size())


def _dense(kind: str, main: str, schema: ModelSchema, values: Mapping[str, Value] | None = None) -> Envelope:
    """Return a message with all groups of a model or an update, dense."""
    parcels = {
        group: Dense().encode(zeros(schema.of_group(group)), schema.of_group(group), np.random.default_rng(0))
        for group in message_groups(schema, main)
    }
    return Envelope(kind, 1, 1, parcels=parcels, values=values or {})


def message_groups(schema: ModelSchema, main: str) -> tuple[str, ...]:
    """Return the message groups of a model or an update; those without tensors are left out."""
    parts = {main: schema.weights, "buffers": schema.buffers, "counters": schema.counters}
    return tuple(group for group, part in parts.items() if len(part))
