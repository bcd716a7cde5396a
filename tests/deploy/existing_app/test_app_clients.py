"""An app's nodes as an executor: numbered by partition, heard about their examples, refused when they say nonsense."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message, MetricRecord, RecordDict

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy.existing_app import app_clients
from fedreuse.deploy.existing_app.app_clients import ReportedPopulation
from fedreuse.deploy.existing_app.strategy import FedReuseStrategy
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of, others_of
from fedreuse.testing.quadratic import QuadraticFederation
from tests.deploy.app_grid import FIRST_NODE, AppGrid, quadratic_app, record_of

FEDERATION = QuadraticFederation.draw(3)


def test_who_has_not_spoken_counts_as_an_average_client() -> None:
    population = ReportedPopulation(4)
    population.report(0, 10)
    assert population.examples.tolist() == [10, 10, 10, 10]
    population.report(2, 40)
    assert population.examples.tolist() == [10, 25, 40, 25]
    assert population.total_examples == 100
    assert population.share(2) == 0.4
    assert population.ratio_weights([0, 2]) == {0: 0.2, 2: 0.8}
    population.report(1, 0)
    population.report(3, 0)
    assert population.total_examples == 50  # nothing is kept from before


def test_what_the_server_knows_counts_whatever_a_client_says() -> None:
    population = ReportedPopulation(3, known={1: 30})
    assert population.examples.tolist() == [30, 30, 30]
    population.report(1, (1 << 53) - 1)
    population.report(0, 10)
    assert population.examples.tolist() == [10, 30, 20]
    assert population.ratio_weights([0, 1]) == {0: 0.25, 1: 0.75}


def start(folder: Path, spoil: object) -> FedReuseStrategy:
    grid = AppGrid(folder, quadratic_app(FEDERATION), 3)
    grid.spoil = spoil  # type: ignore[assignment]
    strategy = FedReuseStrategy(fraction_evaluate=0.0)
    strategy.start(grid, record_of(FEDERATION), 2, timeout=0.3)
    return strategy


def test_clients_are_numbered_by_partition(tmp_path: Path) -> None:
    strategy = start(tmp_path, lambda request, reply: reply)
    told = strategy._training.clients.population.examples  # type: ignore[union-attr]
    assert np.array_equal(told, FEDERATION.examples)


def _again(frame: Frame) -> Frame:
    envelope = Envelope.from_bytes(frame.body, FEDERATION.schema)
    return replace(frame, body=replace(envelope, exchange=9).to_bytes())


def _other(frame: Frame) -> Frame:
    envelope = Envelope.from_bytes(frame.body, FEDERATION.schema)
    return replace(frame, body=replace(envelope, kind="score").to_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [
        lambda frame: replace(frame, body=b"garbage"),
        lambda frame: replace(frame, body=frame.body[:-1]),
        lambda frame: replace(frame, run="another"),
        lambda frame: replace(frame, client=2),
        lambda frame: replace(frame, facts={}),
        lambda frame: replace(frame, facts={"refused": "no"}),
        lambda frame: replace(frame, facts={"work": {**frame.facts["work"], "training_steps": 2**64 - 1}}),
        _again,
        _other,
    ],
)
def test_nonsense_is_a_lost_reply(tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil) -> None:
    def spoiled(request: Message, reply: Message) -> Message:
        if request.metadata.group_id == "1" and request.metadata.dst_node_id == FIRST_NODE + 1:
            content = content_of(spoil(frame_of(reply)))
            content.update(others_of(reply))
            return Message(content, reply_to=request)
        return reply

    events = start(tmp_path, spoiled).ledger.events
    assert "round 1: reply of client 1 refused: " in caplog.text
    assert [(event.round_number, event.client) for event in events if event.outcome == "lost"] == [(1, 1)]


def test_a_node_that_stays_silent_at_the_start_is_told_of(tmp_path: Path) -> None:
    grid = AppGrid(tmp_path, quadratic_app(FEDERATION), 3)
    grid.spoil = lambda request, reply: None if request.metadata.dst_node_id == FIRST_NODE else reply
    with pytest.raises(RunError, match="only 2 of 3 nodes agreed, 3 must"):
        FedReuseStrategy(min_available_nodes=3).start(grid, record_of(FEDERATION), 1, timeout=0.3)


def test_an_app_without_the_decorator_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grid = AppGrid(tmp_path, quadratic_app(FEDERATION, decorate=lambda function: function), 3)
    with pytest.raises(RunError, match="only 0 of 3 nodes agreed"):
        FedReuseStrategy().start(grid, record_of(FEDERATION), 1, timeout=0.3)
    assert "is its train function decorated?" in caplog.text


def test_nodes_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_clients, "_POLL_SECONDS", 0.0)
    grid = AppGrid(tmp_path, quadratic_app(FEDERATION), 3)
    looks = iter([[], [FIRST_NODE]])
    everybody = list(grid.contexts)
    monkeypatch.setattr(grid, "get_node_ids", lambda: next(looks, everybody))
    strategy = FedReuseStrategy(min_available_nodes=3, fraction_evaluate=0.0)
    strategy.start(grid, record_of(FEDERATION), 1)
    assert {row.client for row in strategy.ledger.rows} == {0, 1, 2}


def test_a_refused_reply_changes_no_weights(tmp_path: Path) -> None:
    def spoiled(request: Message, reply: Message) -> Message:
        if request.metadata.group_id and request.metadata.dst_node_id == FIRST_NODE + 1:
            content = content_of(replace(frame_of(reply), body=b"garbage"))
            content.update(RecordDict({"metrics": MetricRecord({"num-examples": 2**53 - 1})}))
            return Message(content, reply_to=request)
        return reply

    population = start(tmp_path, spoiled)._training.clients.population  # type: ignore[union-attr]
    honest = FEDERATION.examples
    assert population.examples.tolist() == [honest[0], round((honest[0] + honest[2]) / 2), honest[2]]


def test_a_node_that_refuses_does_not_end_what_the_others_began(tmp_path: Path) -> None:
    def spoiled(request: Message, reply: Message) -> Message:
        if request.metadata.dst_node_id == FIRST_NODE + 2:
            return Message(content_of(replace(frame_of(reply), facts={"refused": "not with me"})), reply_to=request)
        return reply

    assert {row.client for row in start(tmp_path, spoiled).ledger.rows} == {0, 1}


def test_a_false_number_of_examples_buys_no_more_than_the_bound(tmp_path: Path) -> None:
    def spoiled(request: Message, reply: Message) -> Message:
        if request.metadata.group_id and request.metadata.dst_node_id == FIRST_NODE + 1:
            content = content_of(frame_of(reply))
            content.update(others_of(reply))
            for record in content.metric_records.values():
                record["num-examples"] = 2**53 - 1
            return Message(content, reply_to=request)
        return reply

    grid = AppGrid(tmp_path, quadratic_app(FEDERATION), 3)
    grid.spoil = spoiled
    strategy = FedReuseStrategy(fraction_evaluate=0.0, max_examples=1, max_norm=1e6)
    strategy.start(grid, record_of(FEDERATION), 1, timeout=0.3)
    training = strategy._training
    assert training is not None
    assert training.clients.population.ratio_weights([0, 1, 2]) == dict.fromkeys(range(3), 1 / 3)
    assert training._method.max_norm == 1e6
    for bounds, reason in (({"max_norm": 0.0}, "max_norm must be"), ({"max_examples": 0}, "max_examples must be")):
        with pytest.raises(ConfigError, match=reason):
            FedReuseStrategy(**bounds)


def test_a_false_count_weighs_no_more_than_the_median_of_the_reports() -> None:
    population = ReportedPopulation(4, "median")
    for client, examples in enumerate([10, 30, 20]):
        population.report(client, examples)
    assert population.max_examples == 20
    population.report(3, 10**9)
    assert population.max_examples == 25  # of 10, 20, 30 and the false one
    assert population.ratio_weights(range(4)) == {0: 0.125, 1: 0.3125, 2: 0.25, 3: 0.3125}
