"""Boundaries over the same rows: every number worked out by hand."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from fedreuse.accounting.boundaries.boundary import Reference, boundary_of, evaluated, measured, modelled
from fedreuse.accounting.boundaries.update_fields import REUSE_BYTES
from fedreuse.accounting.ledger import EventRow, LedgerRow
from fedreuse.accounting.traffic import Traffic, evaluation_bytes, savings, traffic
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import build, top_k

REFERENCE = Reference(dense_bytes=1000, request_bytes=1030, reply_bytes=1020)


def row(number: int, client: int, direction: str, kind: str, fields: dict[str, int], value_bytes: int = 0) -> LedgerRow:
    purpose = "evaluation" if kind == "evaluate" else "training"
    total = sum(fields.values()) + value_bytes + 30
    return LedgerRow(number, number, client, direction, kind, purpose, "in_time", fields, value_bytes, 30, total)


def event(number: int, client: int, outcome: str) -> EventRow:
    return EventRow(number, client, outcome, "", None, None)


DENSE_MODEL = {"model:dense": 980, "counters:dense": 20}
ROWS = [
    # round 1: both train; 200 + 30 and 250 + 20 field bytes come back
    row(1, 0, "down", "train", DENSE_MODEL),
    row(1, 1, "down", "train", DENSE_MODEL),
    row(1, 0, "up", "update", {"update:bitmap": 200, "buffers:dense": 30}),
    row(1, 1, "up", "update", {"update:bitmap": 250, "counters:dense": 20}),
    # round 2: client 1 is asked for a score (4 B) and reused; client 0 trains: 180 + 20
    row(2, 0, "down", "train", DENSE_MODEL),
    row(2, 1, "down", "score", DENSE_MODEL),
    row(2, 1, "up", "score", {}, 4),
    row(2, 0, "up", "update", {"update:pairs": 180, "buffers:dense": 20}),
    row(2, 0, "down", "evaluate", DENSE_MODEL),
    row(2, 0, "up", "evaluate", {}, 12),
]
EVENTS = [event(1, 0, "fresh"), event(1, 1, "fresh"), event(2, 0, "fresh"), event(2, 1, "reused")]


def found(name: str) -> Traffic:
    return traffic(boundary_of(name), ROWS, EVENTS, REFERENCE)


def test_update_fields() -> None:
    # round 1: 230 + 270; round 2: 200 + 16 for the reuse; nothing down, neither here nor in the reference
    result = found("update_fields")
    assert (result.up.tolist(), result.down.tolist()) == ([500, 216], [0, 0])
    assert (result.dense_up.tolist(), result.dense_down.tolist()) == ([2000, 2000], [0, 0])
    # cumulative 1 - 716 / 4000; the mean of 1 - 500 / 2000 and 1 - 216 / 2000
    assert result.saving() == pytest.approx(0.821)
    assert result.mean_saving() == pytest.approx((0.75 + 0.892) / 2)


def test_symmetric_fields() -> None:
    # the same plus 1000 down for each of two selected clients per round
    result = found("symmetric_fields")
    assert (result.up.tolist(), result.down.tolist()) == ([500, 216], [2000, 2000])
    assert result.saving() == pytest.approx(1 - (716 + 4000) / 8000)
    assert result.saving("down") == 0.0
    assert result.saving("up") == pytest.approx(0.821)


def test_all_fields() -> None:
    # true scalars: 4 for the score, no 16; every group down
    result = found("all_fields")
    assert (result.up.tolist(), result.down.tolist()) == ([500, 204], [2000, 2000])
    assert result.saving() == pytest.approx(1 - 4704 / 8000)


def test_messages() -> None:
    # 30 bytes of header each
    result = found("messages")
    assert result.up.tolist() == [500 + 60, 204 + 60]
    assert result.down.tolist() == [2060, 2060]
    assert (result.dense_up.tolist(), result.dense_down.tolist()) == ([2040, 2040], [2060, 2060])
    assert result.both.tolist() == [2620, 2324]


def test_evaluation_is_told_apart() -> None:
    evaluation = evaluation_bytes(ROWS)
    assert evaluation["all_fields"] == {"up_bytes": 12, "down_bytes": 1000}
    assert evaluation["messages"] == {"up_bytes": 42, "down_bytes": 1030}


def test_cumulative_and_per_round_mean_differ_with_the_cohort() -> None:
    # round 1 with one client and saving 0.9, round 2 with three and saving 0: mean 0.45, cumulative 1 - 3100 / 4000
    rows = [row(1, 0, "up", "update", {"update:pairs": 100})]
    rows += [row(2, client, "up", "update", {"update:dense": 1000}) for client in range(3)]
    events = [event(1, 0, "fresh"), *(event(2, client, "fresh") for client in range(3))]
    result = traffic(boundary_of("update_fields"), rows, events, REFERENCE)
    assert result.mean_saving() == pytest.approx(0.45)
    assert result.saving() == pytest.approx(0.225)


def test_late_and_refused_bytes_crossed() -> None:
    late = LedgerRow(1, 1, 0, "up", "update", "training", "late", {"update:dense": 1000}, 0, 30, 1030)
    result = traffic(boundary_of("update_fields"), [late], [event(1, 0, "lost")], REFERENCE)
    assert result.saving() == 0.0


def test_a_lost_reply_is_no_saving() -> None:
    """Dense FedAvg of which half of the replies are lost saves nothing, under any boundary that has a reference."""
    rows = [row(1, client, "down", "train", {"model:dense": 1000}) for client in range(4)]
    rows += [row(1, client, "up", "update", {"update:dense": 1000}) for client in range(2)]
    events = [event(1, client, "fresh" if client < 2 else "lost") for client in range(4)]
    drawn = savings(rows, events, Reference(1000, 1030, 1030))
    for name in ("update_fields", "symmetric_fields", "all_fields", "messages"):
        assert (drawn[name].saving(), drawn[name].lost_share) == (0.0, 0.5), name
    assert drawn["update_fields"].dense_up.tolist() == [2000]
    assert drawn["messages"].dense_down.tolist() == [4 * 1030]


def test_a_score_that_came_before_the_update_was_lost_is_no_update() -> None:
    rows = [row(1, 0, "up", "score", {}, 4)]
    result = traffic(boundary_of("update_fields"), rows, [event(1, 0, "lost")], REFERENCE)
    assert (result.dense_up.tolist(), result.lost_share) == ([0], 1.0)
    assert isnan(result.saving())


def test_rounds_without_clients_count_nothing() -> None:
    result = traffic(boundary_of("messages"), [], [event(2, 0, "reused")], REFERENCE, num_rounds=3)
    assert result.up.tolist() == [0, 0, 0]
    assert result.saving() == 1.0
    assert result.mean_saving() == 1.0
    assert isnan(traffic(boundary_of("messages"), [], [], REFERENCE, num_rounds=2).saving())
    assert isnan(traffic(boundary_of("messages"), [], [], REFERENCE, num_rounds=2).mean_saving())
    assert isnan(found("update_fields").saving("down"))


def test_every_boundary_has_its_name_and_meaning() -> None:
    assert all(bound.name == name and bound.meaning for name, bound in modelled().items())
    assert {name: result.boundary for name, result in savings(ROWS, EVENTS, REFERENCE).items()} == {
        name: name for name in modelled() | evaluated()
    }
    assert REUSE_BYTES == 16


# two clients, two rounds, one reuse, through the engine


def test_a_run_by_hand() -> None:
    federation = QuadraticFederation.draw(2)
    gate = {"name": "age_only", "max_age": 4, "quota": 0.5}
    session = federation.play(build("dg_fedreuse", top_k(0.3), gate=gate), 2, Setting(cohort=2))
    assert [(e.round_number, e.client, e.outcome) for e in session.ledger.events] == [
        (1, 0, "fresh"),
        (1, 1, "fresh"),
        (2, 0, "fresh"),
        (2, 1, "reused"),
    ]
    # dense: 12 + 6 floats and a counter of 8 bytes: 152
    # update, r = 0.3: body 1 of 6 (bitmap 8 + 1 = 9), fc.weight 1 of 4 (9), fc.bias 1 of 2 (9): 27; buffers 48, n 8
    reference = Reference(session.schema.dense_bytes, 0, 0)
    assert reference.dense_bytes == 152
    results = savings(session.ledger.rows, session.ledger.events, reference)
    assert results["update_fields"].up.tolist() == [2 * 83, 83 + 16]
    assert results["symmetric_fields"].down.tolist() == [304, 304]
    # the reused client is not contacted: one model down in round 2
    assert results["all_fields"].down.tolist() == [304, 152]
    assert results["all_fields"].up.tolist() == [166, 83]
    assert results["update_fields"].saving() == pytest.approx(1 - (166 + 99) / 608)


def test_without_sparsity_and_reuse_nothing_is_saved_in_any_direction() -> None:
    session = QuadraticFederation.draw(3).play(build("fedavg"), 3)
    results = savings(session.ledger.rows, session.ledger.events, Reference(152, 0, 0))
    for name in ("update_fields", "symmetric_fields", "all_fields"):
        assert results[name].saving() == 0.0
        assert results[name].mean_saving() == 0.0
    np.testing.assert_array_equal(results["all_fields"].both, [912, 912, 912])


def seen(number: int, client: int, direction: str, **seen: int) -> LedgerRow:
    return LedgerRow(number, number, client, direction, "", "training", "measured", seen, 0, 0, 0)


SEEN = [
    seen(1, 0, "up", transport=700, interface=900),
    seen(1, 0, "down", transport=1500, interface=1800),
    seen(1, 1, "up", transport=50, interface=90),
    seen(2, 1, "up", transport=60, interface=99),
]


def test_measured_boundaries_are_absent_without_a_meter() -> None:
    assert list(savings(ROWS, EVENTS, REFERENCE)) == [*modelled(), *evaluated()]
    assert list(measured()) == ["transport", "interface"]


def test_measured_boundaries_by_hand() -> None:
    drawn = savings([*ROWS, *SEEN], EVENTS, REFERENCE)
    # round 1: 700 + 50 up and 1500 down; round 2: 60 up
    assert drawn["transport"].up.tolist() == [750, 60]
    assert drawn["transport"].down.tolist() == [1500, 0]
    assert drawn["interface"].up.tolist() == [990, 99]
    assert not drawn["transport"].has_reference
    assert isnan(drawn["transport"].saving())


def test_a_meter_changes_no_other_boundary() -> None:
    with_meter, without = savings([*ROWS, *SEEN], EVENTS, REFERENCE), savings(ROWS, EVENTS, REFERENCE)
    for name in modelled():
        assert with_meter[name].up.tolist() == without[name].up.tolist()
        assert with_meter[name].down.tolist() == without[name].down.tolist()
    asked = LedgerRow(2, 2, 0, "up", "", "evaluation", "measured", {"transport": 9}, 0, 0, 0)
    assert evaluation_bytes([*ROWS, asked]) == evaluation_bytes(ROWS)


def test_what_only_a_relay_counted_has_no_packets() -> None:
    drawn = savings([*ROWS, seen(1, 0, "up", transport=7)], EVENTS, REFERENCE)
    assert "interface" not in drawn
    assert drawn["transport"].up.tolist() == [7, 0]
