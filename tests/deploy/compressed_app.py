"""An app of NumPy arrays for tests of compressed strategies: every node steps towards an optimum of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import (
    Result,
)

from fedreuse.deploy import compression_mod
from tests.deploy.app_grid import AppGrid

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
