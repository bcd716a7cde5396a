"""What a message costs beside its numbers: framing and header of real networks, and messages without tensors."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.links.link import parse_link
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.method import LinkContext
from fedreuse.core.model import Model, to_groups
from fedreuse.core.schema import ModelSchema, Schema
from fedreuse.core.tensors import Tensors
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import build
from tests.learning.networks.uploads import schema_for

SCHEMAS = {"cnn": schema_for("cnn", (1, 28, 28), 10), "resnet18": schema_for("resnet18", (3, 32, 32), 10)}
MOST = {"cnn": 200, "resnet18": 2000}
TOP_K = {"name": "top_k", "ratio": 0.2}


def message(schema: ModelSchema, link: object) -> Envelope:
    """Update, buffers and counters of one client, the first through a link."""
    rng = np.random.default_rng(1)

    def draw(part: Schema) -> Tensors:
        return Tensors(part, (rng.normal(size=part.size) * 100).astype(part.dtype))

    parcels = {}
    update = Model(draw(schema.weights), draw(schema.buffers), draw(schema.counters))
    for group, tensors in to_groups(update, "update").items():
        chosen = parse_link(link, "uplink.update") if group == "update" else Plain()
        parcels[group], _ = chosen.send(tensors, None, LinkContext(schema.of_group(group), 1, 0, rng))
    return Envelope("update", 2**31, 2**31, 2**31, parcels=parcels)


def overhead(envelope: Envelope) -> int:
    """All bytes but those of values and masks."""
    blocks = [block for parcel in envelope.parcels.values() if parcel is not None for block in parcel.all_blocks()]
    heads = sum(getattr(block, "head_bytes", 0) for block in blocks)
    arrays = sum(field.nbytes for block in blocks for field in block.fields)
    return len(envelope.to_bytes()) - arrays + heads


@pytest.mark.slow
@pytest.mark.parametrize("network", SCHEMAS)
def test_framing_and_header_of_a_top_k_update(network: str) -> None:
    assert overhead(message(SCHEMAS[network], TOP_K)) < MOST[network]


@pytest.mark.slow
@pytest.mark.skipif("packed" not in codecs.names(), reason="there is no packed codec")
@pytest.mark.parametrize("network", SCHEMAS)
def test_framing_header_and_heads_of_a_packed_update(network: str) -> None:
    assert overhead(message(SCHEMAS[network], {"name": "packed", "codec": TOP_K})) < MOST[network]


def test_messages_without_tensors_are_short() -> None:
    """Of DG-FedReuse, each question and answer that carries no tensors, in a real conversation."""
    gate = {"name": "proxy", "tau_start": 0.3, "tau_floor": 0.05, "max_age": 3, "batches": 1}
    method = build("dg_fedreuse", TOP_K, gate=gate)
    session = Session(QuadraticFederation.draw(4), method, Setting(cohort=4)).advance(6)
    rows = [row for row in session.ledger.rows if not row.fields]
    assert {row.kind for row in rows} >= {"score"}
    assert max(row.total_bytes for row in rows) < 64
