"""The dense reference: every tensor once each way, and the size of the messages that dense FedAvg really sends."""

from __future__ import annotations

from fedreuse.accounting.dense import dense_reference, message_groups
from fedreuse.core.schema import ModelSchema
from fedreuse.testing.quadratic import QuadraticFederation, quadratic_schema
from tests.federation import build


def test_it_is_what_dense_fedavg_sends() -> None:
    schema = quadratic_schema()
    reference = dense_reference(schema)
    assert reference.dense_bytes == schema.dense_bytes
    session = QuadraticFederation.draw(3).play(build("fedavg"), 2)
    sizes = {row.direction: row.total_bytes for row in session.ledger.rows}
    assert sizes == {"down": reference.request_bytes, "up": reference.reply_bytes}


def test_groups_without_tensors_do_not_travel() -> None:
    assert message_groups(quadratic_schema(), "model") == ("model", "buffers", "counters")
    assert message_groups(ModelSchema(quadratic_schema().weights), "update") == ("update",)
