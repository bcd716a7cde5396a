"""The dense reference: every tensor once each way, and the size of the messages that dense FedAvg really sends."""

from __future__ import annotations

from fedreuse.accounting.dense import dense_reference, evaluation_size, message_groups
from fedreuse.core.method import Evaluations
from fedreuse.core.metrics import Metrics
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


def test_evaluations_by_one_client_are_at_most_as_long_as_planned() -> None:
    """The dense model and two strings down; three numbers of at most nine bytes up."""
    session = QuadraticFederation.draw(3).play(build("fedavg"), 2)
    session.evaluate("received")
    rows = [row for row in session.ledger.rows if row.purpose == "evaluation" and row.client == 0]
    planned = evaluation_size(session.schema, Evaluations(1, Metrics(1, 1.0, 1.0).longest.to_values()))
    assert 0 <= planned - sum(row.total_bytes for row in rows) <= 8  # a small count takes one byte instead of nine
    assert evaluation_size(session.schema, Evaluations(4, {})) == 4 * evaluation_size(
        session.schema, Evaluations(1, {})
    )


def test_groups_without_tensors_do_not_travel() -> None:
    assert message_groups(quadratic_schema(), "model") == ("model", "buffers", "counters")
    assert message_groups(ModelSchema(quadratic_schema().weights), "update") == ("update",)
