"""Strategies around a strategy: what the inner one computes, what nodes hold, and what crosses."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedMedian,
    FedXgbBagging,
    Krum,
    Result,
)

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy import Compressed, FedReuseStrategy, Lean, compression_mod
from tests.deploy.app_grid import FIRST_NODE, AppGrid

NODES, SIZE = 3, 4000
EXACT = {"uplink": {"name": "plain", "codec": "dense"}, "downlink": {"name": "plain", "codec": "dense"}}
FLOWER = {"min_available_nodes": NODES, "min_train_nodes": NODES, "min_evaluate_nodes": NODES}
Function = Callable[[Message, Context], Message]


def initial(**more: np.ndarray) -> ArrayRecord:
    rng = np.random.default_rng(0)
    arrays = {"w": rng.normal(size=(SIZE // 10, 10)).astype(np.float32), "b": np.zeros(10, np.float32), **more}
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def towards(message: Message, context: Context) -> dict[str, np.ndarray]:
    """One step towards an optimum that differs from node to node."""
    number = context.node_config["partition-id"]
    arrays = {name: array.numpy() for name, array in message.content["arrays"].items()}
    goal = np.random.default_rng(5).normal(size=arrays["w"].shape) + 0.1 * number
    return {**arrays, "w": (arrays["w"] + 0.5 * (goal - arrays["w"])).astype(np.float32)}


def reply(message: Message, arrays: dict[str, np.ndarray] | None, **metrics: float) -> Message:
    records: dict[str, Any] = {"metrics": MetricRecord({"num-examples": 10, **metrics})}
    if arrays is not None:
        records["arrays"] = ArrayRecord({name: Array(np.array(array)) for name, array in arrays.items()})
    return Message(RecordDict(records), reply_to=message)


def app_of(
    train: Function | None = None, evaluate: Function | None = None, mods: Any = (compression_mod,)
) -> ClientApp:
    app = ClientApp(mods=list(mods))

    @app.train()
    def _(message: Message, context: Context) -> Message:
        return (train or (lambda m, c: reply(m, towards(m, c))))(message, context)

    @app.evaluate()
    def _(message: Message, context: Context) -> Message:
        norm = float(np.linalg.norm(message.content["arrays"]["w"].numpy()))
        return (evaluate or (lambda m, c: reply(m, None, norm=norm)))(message, context)

    return app


def run(
    strategy: Any, folder: Path, app: ClientApp | None = None, rounds: int = 4, **more: Any
) -> tuple[Result, AppGrid]:
    grid = AppGrid(folder, app or app_of(), NODES)
    return strategy.start(grid, more.pop("arrays", initial()), rounds, timeout=9, **more), grid


def arrays_of(result: Result) -> dict[str, np.ndarray]:
    return {name: array.numpy() for name, array in result.arrays.items()}


def test_with_dense_links_it_is_the_strategy_itself(tmp_path: Path) -> None:
    own, _ = run(FedAvg(**FLOWER), tmp_path / "own", app_of(mods=()))
    wrapped, _ = run(Compressed(FedAvg(**FLOWER), **EXACT), tmp_path / "wrapped")
    for name, array in arrays_of(own).items():
        np.testing.assert_allclose(arrays_of(wrapped)[name], array, rtol=0, atol=2e-6)  # x + (y - x) rounds once
    assert wrapped.evaluate_metrics_clientapp.keys() == {1, 2, 3, 4}


@pytest.mark.parametrize("make", [FedAvg, FedAdam, lambda **k: Krum(num_malicious_nodes=0, **k)])
def test_lean_learns_with_any_aggregation(make: Any, tmp_path: Path) -> None:
    own, _ = run(make(**FLOWER), tmp_path / "own", app_of(mods=()), rounds=12)
    strategy = Lean(make(**FLOWER), budget=0.2)
    wrapped, grid = run(strategy, tmp_path / "lean", rounds=12)
    start = initial()["w"].numpy()
    far = np.linalg.norm(arrays_of(own)["w"] - start)
    assert np.linalg.norm(arrays_of(wrapped)["w"] - arrays_of(own)["w"]) < 0.25 * far
    for way in ("down", "up"):
        crossed = sum(size for _, direction, size in grid.crossed if direction == way)
        assert crossed < 0.25 * strategy.traffic.total_dense(way)  # the agreement and Flower's names come on top
        assert strategy.traffic.total(way) < 0.22 * strategy.traffic.total_dense(way)


def test_the_counted_bytes_are_those_of_the_messages(tmp_path: Path) -> None:
    strategy = Lean(FedAvg(**FLOWER), budget=0.2)
    _, grid = run(strategy, tmp_path)
    for way in ("down", "up"):
        crossed = sum(size for _, direction, size in grid.crossed if direction == way)
        assert strategy.traffic.total(way) == pytest.approx(crossed, rel=0.03)


def test_evaluation_brings_the_model_and_training_then_needs_none(tmp_path: Path) -> None:
    strategy = Lean(FedAvg(**FLOWER), budget=0.2)
    _, grid = run(strategy, tmp_path)
    down = [(kind, size) for kind, way, size in grid.crossed if way == "down"]
    evaluated = [size for kind, size in down if kind == "evaluate"]
    trained = [size for kind, size in down if kind == "train"][2 * NODES :]  # after the first contacts
    assert min(evaluated) > 5 * max(trained)


def test_a_node_evaluates_what_it_holds(tmp_path: Path) -> None:
    seen: list[np.ndarray] = []

    def evaluate(message: Message, context: Context) -> Message:
        seen.append(message.content["arrays"]["w"].numpy())
        return reply(message, None)

    result, _ = run(Lean(FedAvg(**FLOWER), budget=0.3), tmp_path, app_of(evaluate=evaluate), rounds=8)
    errors = [np.linalg.norm(held - arrays_of(result)["w"]) for held in seen[-NODES:]]
    assert max(errors) < 0.1 * np.linalg.norm(arrays_of(result)["w"])


def test_a_first_contact_is_not_repeated_in_the_next_run(tmp_path: Path) -> None:
    sizes = []
    for _ in range(2):
        strategy = Lean(FedAvg(**FLOWER), budget=0.2)
        run(strategy, tmp_path)
        sizes.append(strategy.traffic.sent["first contact", "down"])
    assert sizes[0] > NODES * SIZE * 0.9  # a byte for each weight, packed
    assert sizes[1] == 0


def test_a_node_that_lost_its_disk_is_sent_the_model_again(tmp_path: Path) -> None:
    lost = tmp_path / "node-1"
    grid = AppGrid(tmp_path, app_of(), NODES)
    asked: list[str] = []

    def spoil(request: Message, answer: Message) -> Message:
        asked.append(request.metadata.message_type)
        if len(asked) == 4 * NODES:
            shutil.rmtree(lost)
        return answer

    grid.spoil = spoil
    strategy = Lean(FedAvg(**FLOWER), budget=0.3)
    result = strategy.start(grid, initial(), 8, timeout=9)
    assert strategy.traffic.counts["sent again"] == NODES + 2  # without agreement, then without memory
    assert len(result.train_metrics_clientapp) == 8


def test_a_node_joins_late_and_another_leaves(tmp_path: Path) -> None:
    grid = AppGrid(tmp_path, app_of(), NODES + 1)
    late = grid.contexts.pop(FIRST_NODE + NODES)
    num_replies = 0

    def spoil(request: Message, answer: Message) -> Message:
        nonlocal num_replies
        num_replies += 1
        if num_replies == 5 * NODES:
            grid.contexts[late.node_id] = late
            del grid.contexts[FIRST_NODE]
        return answer

    grid.spoil = spoil
    strategy = Lean(FedAvg(**FLOWER), budget=0.3)
    result = strategy.start(grid, initial(), 8, timeout=9)
    assert len(result.evaluate_metrics_clientapp) == 8
    assert set(strategy.traffic.sent) >= {("first contact", "down"), ("agreement", "down"), ("evaluate", "up")}


def test_a_lost_reply_changes_nothing(tmp_path: Path) -> None:
    grid = AppGrid(tmp_path, app_of(), NODES)
    count = 0

    def spoil(request: Message, answer: Message) -> Message | None:
        nonlocal count
        count += 1
        return None if count in (7, 13) else answer

    grid.spoil = spoil
    result = Lean(FedAvg(**FLOWER), budget=0.3).start(grid, initial(), 8, timeout=9)
    assert np.isfinite(arrays_of(result)["w"]).all()


def test_messages_without_arrays_and_of_other_strategies_pass(tmp_path: Path) -> None:
    own, _ = run(FedAvg(**FLOWER), tmp_path, app_of())  # the mod is there, the strategy is Flower's
    assert len(own.train_metrics_clientapp) == 4
    own, _ = run(FedReuseStrategy("fed_ef", **FLOWER), tmp_path / "other", app_of())
    assert len(own.train_metrics_clientapp) == 4


def test_arrays_that_an_evaluation_returns_are_not_sent(tmp_path: Path) -> None:
    def echo(message: Message, context: Context) -> Message:
        return reply(message, {name: array.numpy() for name, array in message.content["arrays"].items()})

    strategy = Lean(FedAvg(**FLOWER), budget=0.2)
    run(strategy, tmp_path, app_of(evaluate=echo))
    assert strategy.traffic.sent["evaluate", "up"] < 0.02 * strategy.traffic.dense["evaluate", "up"]


def test_a_part_of_the_arrays_and_more_than_the_arrays(tmp_path: Path) -> None:
    def train(message: Message, context: Context) -> Message:
        arrays = towards(message, context)
        return reply(message, {"extra": np.arange(3.0), "w": arrays["w"]})

    seen: list[list[str]] = []

    class Looking(FedAvg):
        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            kept = list(replies)
            seen.extend(list(answer.content["arrays"]) for answer in kept)
            return None, None

    run(Compressed(Looking(**FLOWER)), tmp_path, app_of(train=train), rounds=1)
    assert seen == [["extra", "w"]] * NODES


@pytest.mark.parametrize("kind", ["float16", "float64", "int32", "bool"])
def test_other_dtypes_come_back(kind: str, tmp_path: Path) -> None:
    dtypes: set[str] = set()

    def train(message: Message, context: Context) -> Message:
        dtypes.add(str(message.content["arrays"]["more"].numpy().dtype))
        return reply(message, towards(message, context))

    arrays = initial(more=np.array([1, 0, 1]).astype(kind))
    result, _ = run(Compressed(FedAvg(**FLOWER)), tmp_path, app_of(train=train), rounds=2, arrays=arrays)
    assert dtypes == {kind}
    assert arrays_of(result)["more"].tolist() == [1, 0, 1]


def errors_in(caplog: pytest.LogCaptureFixture) -> str:
    return " ".join(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


def test_a_node_without_the_mod_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RunError, match=r"every reply was refused; node 100\d: .*mods=\[compression_mod\]"):
        run(Lean(FedAvg(**FLOWER), budget=0.3), tmp_path, app_of(mods=()))


def test_changed_shapes_are_named(tmp_path: Path) -> None:
    def train(message: Message, context: Context) -> Message:
        return reply(message, {"w": np.zeros((2, 2), np.float32)})

    with pytest.raises(RunError, match=r"returned w as float32 \(2, 2\), but was given float32 \(400, 10\)"):
        run(Lean(FedAvg(**FLOWER), budget=0.3), tmp_path, app_of(train=train))


def test_keys_that_always_change_are_refused(tmp_path: Path) -> None:
    class Growing(FedAvg):
        def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
            grown = ArrayRecord({**arrays, f"more{server_round}": Array(np.zeros(server_round, np.float32))})
            return super().configure_train(server_round, grown, config, grid)

    with pytest.raises(RunError, match="8 different layouts"):
        run(Compressed(Growing(fraction_evaluate=0.0, **FLOWER)), tmp_path, rounds=10)


def test_refused_strategies() -> None:
    with pytest.raises(ConfigError, match="FedXgbBagging is refused: it sends trees"):
        Lean(FedXgbBagging())
    with pytest.raises(ConfigError, match="ClientSideFixedClipping is refused: clients clip"):
        Lean(DifferentialPrivacyClientSideFixedClipping(FedAvg(), 1.0, 1.0, 3))
    with pytest.raises(ConfigError, match=r"FedMedian compares single coordinates.*ef21"):
        Compressed(FedMedian())
    Compressed(FedMedian(), uplink={"name": "ef21", "codec": {"name": "top_k", "ratio": 0.05}})
    with pytest.raises(ConfigError, match="older interface"):
        Lean("FedAvg")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="inside another compression"):
        Lean(Lean(FedAvg()))


def test_around_differential_privacy_at_the_server(tmp_path: Path) -> None:
    private = DifferentialPrivacyServerSideFixedClipping(FedAvg(**FLOWER), 0.001, 10.0, NODES)
    result, _ = run(Lean(private, budget=0.3), tmp_path)
    assert len(result.train_metrics_clientapp) == 4


def test_inside_another_strategy_it_is_refused(tmp_path: Path) -> None:
    private = DifferentialPrivacyServerSideFixedClipping(Lean(FedAvg(**FLOWER)), 0.001, 10.0, NODES)
    with pytest.raises(RunError, match="put Lean outermost"):
        run(private, tmp_path)


@pytest.mark.parametrize(("budget", "rounds"), [(0.0005, 4), (0.01, 1)])
def test_a_budget_that_cannot_be_kept(budget: float, rounds: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"budget must be at least 0\.\d+ in this run .* first contacts alone"):
        run(Lean(FedAvg(**FLOWER), budget=budget), tmp_path, rounds=rounds)


def test_a_budget_that_cannot_train(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    run(Lean(FedAvg(**FLOWER), budget=0.1), tmp_path, rounds=2)
    assert "use at least" in errors_in(caplog)
    assert "or a budget of at least" in errors_in(caplog)


def test_custom_actions_and_queries(tmp_path: Path) -> None:
    app = app_of()

    @app.train("warm")
    def warm(message: Message, context: Context) -> Message:
        return reply(message, towards(message, context))

    @app.query()
    def query(message: Message, context: Context) -> Message:
        return Message(
            RecordDict({"answer": ConfigRecord({"twice": 2 * message.content["question"]["n"]})}), reply_to=message
        )

    class Custom(FedAvg):
        def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
            asked = [
                Message(RecordDict({"question": ConfigRecord({"n": 4})}), node, "query") for node in grid.get_node_ids()
            ]
            answers = [answer.content["answer"]["twice"] for answer in grid.send_and_receive(asked)]
            assert answers == [8] * NODES
            content = RecordDict({"arrays": arrays, "config": ConfigRecord({"lr": 0.1})})
            return [Message(content, node, "train.warm") for node in grid.get_node_ids()]

    result, grid = run(Lean(Custom(**FLOWER), budget=0.3), tmp_path, app)
    assert {kind for kind, _, _ in grid.crossed} == {"query", "train.warm", "evaluate"}
    assert len(result.train_metrics_clientapp) == 4
