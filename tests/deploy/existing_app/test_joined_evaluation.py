"""Evaluation in the exchange of the next training: the same metrics in half the messages, and what stays separate."""

from __future__ import annotations

import random  # noqa: TID251 - Flower draws with it
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

from fedreuse.core.errors import ConfigError
from fedreuse.deploy import Compressed, Lean
from fedreuse.deploy.existing_app.joined_evaluation import evaluation_request, why_separate
from tests.deploy.app_grid import AppGrid
from tests.deploy.compressed_app import FLOWER, NODES, app_of, arrays_of, initial, reply, run

ROUNDS = 5


def started(joined: bool | None, folder: Path, app: Any = None, **strategy: Any) -> tuple[Any, Lean, Counter[str]]:
    lean = Lean(FedAvg(**(FLOWER | strategy)), budget=0.3, joined_evaluation=joined)
    result, grid = run(lean, folder, app, rounds=ROUNDS)
    return result, lean, Counter(kind for kind, way, _ in grid.crossed if way == "down")


def test_the_same_bits_and_metrics_in_half_the_messages(tmp_path: Path) -> None:
    found = {}
    for joined in (False, None):  # with links that draw no random numbers
        random.seed(0)  # Flower draws the order of the nodes, and with it of the sums
        strategy = Compressed(FedAvg(**FLOWER), joined_evaluation=joined)
        result, grid = run(strategy, tmp_path / str(joined), rounds=ROUNDS)
        found[joined] = result, Counter(kind for kind, way, _ in grid.crossed if way == "down"), strategy.traffic
    (alone, before, _), (joined_result, after, traffic) = found[False], found[None]
    assert joined_result.evaluate_metrics_clientapp == alone.evaluate_metrics_clientapp
    assert list(joined_result.evaluate_metrics_clientapp) == [1, 2, 3, 4, 5]
    assert joined_result.train_metrics_clientapp == alone.train_metrics_clientapp
    for name, array in arrays_of(alone).items():
        assert np.array_equal(arrays_of(joined_result)[name], array)
    assert before["evaluate"] == ROUNDS * NODES
    assert after["evaluate"] == NODES  # of the last round
    assert after["train"] == before["train"]
    assert traffic.counts["joined"] == (ROUNDS - 1) * NODES


def test_the_strategy_counts_the_bytes_that_it_would_have_sent(tmp_path: Path) -> None:
    _, alone, _ = started(False, tmp_path / "alone")
    _, joined, _ = started(True, tmp_path / "joined")
    assert joined.traffic.dense == alone.traffic.dense
    assert joined.traffic.own_dense.requests == alone.traffic.own_dense.requests == 2 * ROUNDS * NODES
    assert joined.traffic.own.requests == alone.traffic.own.requests - (ROUNDS - 1) * NODES


def test_a_node_that_evaluates_but_does_not_train_gets_a_message_of_its_own(tmp_path: Path) -> None:
    result, _, messages = started(None, tmp_path, fraction_train=0.4, min_train_nodes=1)
    assert len(result.evaluate_metrics_clientapp) == ROUNDS
    assert messages["train"] <= ROUNDS + 1  # one node, and one that was sent the model again
    assert messages["evaluate"] > NODES


def test_strategies_that_stay_separate(tmp_path: Path) -> None:
    class Adaptive(FedAvg):
        def aggregate_evaluate(self, server_round: int, replies: Any) -> Any:
            return super().aggregate_evaluate(server_round, replies)

    class Looping(FedAvg):
        def start(self, *args: Any, **kwargs: Any) -> Any:
            return super().start(*args, **kwargs)

    def private(inner: FedAvg) -> Any:
        return DifferentialPrivacyServerSideFixedClipping(inner, 0.1, 1.0, NODES)

    assert why_separate(FedAvg()) is None
    assert why_separate(private(FedAvg())) is None
    assert why_separate(Adaptive()) == why_separate(private(Adaptive()))
    assert "aggregate_evaluate of Adaptive" in str(why_separate(Adaptive()))
    assert "Looping has a loop of its own" in str(why_separate(Looping()))
    with pytest.raises(ConfigError, match="joined_evaluation: Looping has a loop"):
        Lean(Looping(), joined_evaluation=True)
    for strategy, sent in (
        (Lean(Adaptive(**FLOWER), 0.3), 4),
        (Lean(Adaptive(**FLOWER), 0.3, joined_evaluation=True), 1),
    ):
        _, grid = run(strategy, tmp_path / str(sent))
        assert sum(kind == "evaluate" and way == "down" for kind, way, _ in grid.crossed) == sent * NODES


def test_a_mod_that_does_not_find_its_app_answers_separately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedreuse.deploy.existing_app.mod.calling_app", lambda: None)
    result, lean, messages = started(None, tmp_path)
    assert len(result.evaluate_metrics_clientapp) == ROUNDS
    assert messages["evaluate"] == ROUNDS * NODES
    assert "joined" not in lean.traffic.counts


def test_an_evaluation_that_returns_the_model_and_large_records(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looking(FedAvg):
        def aggregate_evaluate(self, server_round: int, replies: Any) -> Any:
            seen.extend(reply.content for reply in replies)
            return None

    def evaluate(message: Message, context: Context) -> Message:
        more = {"arrays": message.content["arrays"], "long": ConfigRecord({"text": "x" * 40_000})}
        return Message(RecordDict({**more, "metrics": MetricRecord({"num-examples": 1})}), reply_to=message)

    strategy = Compressed(Looking(**FLOWER), joined_evaluation=True)
    run(strategy, tmp_path, app_of(evaluate=evaluate), rounds=2)
    assert strategy.traffic.counts["joined"] == NODES
    assert {frozenset(content) for content in seen} == {frozenset({"arrays", "long", "metrics"})}
    assert {len(content["long"]["text"]) for content in seen} == {40_000}
    assert {content["arrays"]["w"].shape for content in seen} == {(400, 10)}


@pytest.mark.parametrize("is_raised", [True, False])
def test_an_error_of_the_evaluation_is_one_of_the_exchange(is_raised: bool, tmp_path: Path) -> None:
    def evaluate(message: Message, context: Context) -> Message:
        if context.node_config["partition-id"] != 1:
            return reply(message, None, norm=1.0)
        if is_raised:
            raise ValueError("no data here")
        return Message(Error(7, "no data here"), reply_to=message)

    lean = Lean(FedAvg(**FLOWER), budget=0.3)
    result, _ = run(lean, tmp_path, app_of(evaluate=evaluate))
    assert len(result.evaluate_metrics_clientapp) == 4
    assert lean.traffic.counts["joined"] == 3 * NODES


def test_a_node_that_lost_its_disk_evaluates_and_trains_what_it_is_sent_again(tmp_path: Path) -> None:
    grid, count = AppGrid(tmp_path, app_of(), NODES), 0

    def spoil(request: Message, answer: Message) -> Message:
        nonlocal count
        count += 1
        if count == 3 * NODES:
            (tmp_path / "node-1").rename(tmp_path / "lost")
        return answer

    grid.spoil = spoil
    lean = Lean(FedAvg(**FLOWER), budget=0.3)
    result = lean.start(grid, initial(), 6, timeout=9)
    assert lean.traffic.counts["sent again"] == NODES + 2  # first contacts; then without agreement, without model
    assert len(result.evaluate_metrics_clientapp) == 6


def test_requests_that_cannot_travel_together() -> None:
    arrays = initial()
    other = ArrayRecord({"w": Array(np.ones(3, np.float32))})

    def message(kind: str, **records: Any) -> Message:
        return Message(RecordDict(records), 7, kind)

    train = message("train", arrays=arrays, config=ConfigRecord({"lr": 0.1}))
    small = message("evaluate.deep", model=arrays, config=ConfigRecord({"n": 2}))
    assert evaluation_request(small, train)[:2] == ("evaluate.deep", "model")  # type: ignore[index]
    for evaluation in (
        message("evaluate", arrays=other),
        message("evaluate", arrays=arrays, more=other),
        message("evaluate", arrays=arrays, config=ConfigRecord({"text": "x" * 40_000})),
        message("evaluate"),
    ):
        assert evaluation_request(evaluation, train) is None
