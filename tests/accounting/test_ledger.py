"""The ledger: one row per envelope, with the bytes that are really there."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedreuse.accounting.ledger import Ledger, Measured, row_from_plain, row_to_plain
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.local_trainer import Work
from fedreuse.core.message import Event, Events
from fedreuse.core.tensors import zeros
from fedreuse.engine.executors.executor import Reply
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.testing.quadratic import QuadraticFederation, Setting, quadratic_schema
from tests.federation import build, top_k

SCHEMA = quadratic_schema()
RNG = np.random.default_rng(0)
MODEL = Dense().encode(zeros(SCHEMA.weights), SCHEMA.weights, RNG)
BUFFERS = Dense().encode(zeros(SCHEMA.buffers), SCHEMA.buffers, RNG)


def test_a_row_by_hand() -> None:
    request = Envelope("train", 2, 5, parcels={"model": MODEL, "buffers": BUFFERS})
    ledger = Ledger()
    ledger.note({3: request}, [Reply(3, Envelope("update", 2, 5, parcels={"update": MODEL}), Work(4))], {})
    down, up = ledger.rows
    # 12 weights and 6 statistics of 8 bytes
    assert down.fields == {"model:dense": 96, "buffers:dense": 48}
    assert down.group_bytes() == 144
    assert down.group_bytes("model") == 96
    assert down.group_bytes("update") == 0
    assert down.total_bytes == len(request.to_bytes()) == down.header_bytes + 144
    assert (down.round_number, down.exchange, down.client, down.direction, down.kind) == (2, 5, 3, "down", "train")
    assert (up.direction, up.kind, up.status, up.work) == ("up", "update", "in_time", Work(4))


@pytest.mark.parametrize(
    ("values", "parcels", "wanted"),
    [
        ({}, {}, 1),  # a bare message is a flag
        ({"score": 0.25}, {}, 4),
        ({"is_fresh": True}, {}, 1),
        ({"steps": 7, "is_fresh": False, "name": "äb"}, {}, 4 + 1 + 3),
        ({"layers": (1, 2, (True, "x"))}, {}, 4 + 4 + 1 + 1),
        ({}, {"model": MODEL}, 0),
        ({}, {"model": MODEL, "control": None}, 1),  # silence is a flag
    ],
)
def test_values_by_hand(values: dict, parcels: dict, wanted: int) -> None:
    ledger = Ledger()
    ledger.note({0: Envelope("x", 1, 1, parcels=parcels, values=values)}, [], {})
    assert ledger.rows[0].value_bytes == wanted


def test_purposes() -> None:
    ledger = Ledger()
    ledger.note({0: Envelope("evaluate", 1, 1), 1: Envelope("prefetch", 1, 1), 2: Envelope("score", 1, 1)}, [], {})
    assert [row.purpose for row in ledger.rows] == ["evaluation", "prefetch", "training"]


def test_late_and_refused_replies_are_charged_too() -> None:
    envelope = Envelope("update", 1, 1)
    ledger = Ledger()
    ledger.note(
        {}, [Reply(2, envelope, Work(), "late"), Reply(1, envelope, Work()), Reply(0, envelope, Work())], {1: "why"}
    )
    assert [(row.client, row.status) for row in ledger.rows] == [(0, "in_time"), (1, "refused"), (2, "late")]


def test_events_and_counts() -> None:
    ledger = Ledger()
    ledger.close(4, Events((Event(1, "reused", "", 2, 0.5), Event(3, "fresh", "age", 4)), {"kept variances": 2}))
    ledger.close(5, Events((), {"kept variances": 1}))
    assert [(row.round_number, row.client, row.outcome, row.reason, row.age, row.score) for row in ledger.events] == [
        (4, 1, "reused", "", 2, 0.5),
        (4, 3, "fresh", "age", 4, None),
    ]
    assert ledger.counts == {"kept variances": 3}


def test_rows_as_plain_data() -> None:
    session = QuadraticFederation.draw(3).play(build("dg_fedreuse", top_k(0.3)), 2)
    for row in session.ledger.rows:
        assert row_from_plain(json.loads(json.dumps(row_to_plain(row)))) == row


def test_a_lost_request_has_no_reply() -> None:
    faults = Listed((ListedFault(1, 0, "lost"),))
    session = QuadraticFederation.draw(2).play(build("fedavg"), 1, Setting(cohort=2, faults=faults))
    assert [(row.client, row.direction) for row in session.ledger.rows] == [(0, "down"), (1, "down"), (1, "up")]


def test_what_was_computed_is_in_the_row_of_the_reply() -> None:
    federation = QuadraticFederation.draw(2)
    session = federation.play(build("fedavg"), 1, Setting(cohort=2))
    for row in session.ledger.rows:
        wanted = federation.steps[row.client] if row.direction == "up" else 0
        assert row.work.training_steps == wanted
        assert row.work.training_examples == wanted * federation.examples[row.client]


def test_a_meter_adds_a_row_per_client_and_direction() -> None:
    ledger = Ledger(meter=lambda: [Measured(3, "up", {"transport": 40}), Measured(9, "down", {"transport": 2})])
    ledger.note({3: Envelope("evaluate", 2, 5)}, [], {})
    asked, up, down = ledger.rows
    assert not asked.is_measured
    assert [(row.client, row.direction, row.fields) for row in (up, down)] == [
        (3, "up", {"transport": 40}),
        (9, "down", {"transport": 2}),
    ]
    assert up.is_measured
    assert (up.value_bytes, up.header_bytes, up.total_bytes) == (0, 0, 0)
    assert (up.round_number, up.exchange, up.purpose, up.total_bytes) == (2, 5, "evaluation", 0)
    assert row_from_plain(json.loads(json.dumps(row_to_plain(up)))) == up


def test_what_was_refused_is_told() -> None:
    told: list[str] = []
    ledger = Ledger(warn=told.append)
    asked = {3: Envelope("train", 2, 5), 4: Envelope("train", 2, 5)}
    ledger.note(
        asked, [Reply(3, Envelope("update", 2, 5), Work()), Reply(4, Envelope("update", 2, 5), Work())], {3: "no"}
    )
    assert told == ["round 2: reply of client 3 refused: no"]
    assert [row.status for row in ledger.rows if row.direction == "up"] == ["refused", "in_time"]
