"""What tests of networks share: the upload of one trained network, really encoded."""

from __future__ import annotations

import numpy as np

from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.method import BufferPolicy, LinkContext
from fedreuse.core.model import Model, to_groups
from fedreuse.core.randomness import stream
from fedreuse.core.schema import ModelSchema, Schema
from fedreuse.core.tensors import Tensors
from fedreuse.learning.flat_network import schema_of
from fedreuse.learning.networks.network import networks
from fedreuse.testing.cases import Case

FRAME_BYTES = 2 + 1 + 4 + 4 + 4 * 4  # magic, version, checksum, header length, four addresses


def schema_for(name: str, shape: tuple[int, ...], num_classes: int) -> ModelSchema:
    """The schema of a network by name."""
    return schema_of(networks.parse(name, "network").build(shape, num_classes))


def sizes(schema: ModelSchema) -> tuple[int, int, int, int, int]:
    """Parameters, dense bytes, bytes of the head's signature, tensors, and how many of those are integers."""
    signature = schema.weights.subset(schema.head()).dense_bytes
    num_tensors = len(schema.weights) + len(schema.buffers) + len(schema.counters)
    return schema.weights.size, schema.dense_bytes, signature, num_tensors, len(schema.counters)


def upload(schema: ModelSchema, buffers: BufferPolicy, ratio: float = 0.2) -> Envelope:
    """One client's update through the links of Top-K FedAvg."""
    rng = stream(1, "update")

    def draw(part: Schema) -> Tensors:
        if np.issubdtype(part.dtype, np.integer):
            return Tensors(part, np.ones(part.size, part.dtype))
        return Tensors(part, rng.standard_normal(part.size, np.float32))

    update = Model(draw(schema.weights), draw(schema.buffers), draw(schema.counters))
    links = Case("fedavg", uplink={"name": "top_k", "ratio": ratio}, buffers=buffers).build().uplink
    parcels = {}
    for group, tensors in to_groups(update, "update").items():
        context = LinkContext(schema.of_group(group), 1, 0, rng)
        parcels[group], _ = links.get(group, Plain()).send(tensors, None, context)
    return Envelope("update", 1, 1, parcels=parcels)


def array_bytes(envelope: Envelope) -> int:
    """Bytes of the numerical fields as they really stand on the wire."""
    return len(envelope.to_bytes()) - len(envelope.header) - FRAME_BYTES


def modes(envelope: Envelope) -> dict[str, set[str]]:
    """The modes that the blocks of each group came out in."""
    return {
        group: {block.mode.name for block in parcel.blocks}
        for group, parcel in envelope.parcels.items()
        if parcel is not None
    }
