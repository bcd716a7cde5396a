"""A compressed app in Flower's simulation runtime, for any version of Flower: python simulated.py FOLDER.

Prints one line of JSON: the version, the distance to the optimum before and after, and the shares of bytes.
"""

import json
import os
import sys
from importlib.metadata import version

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdam, FedAvg
from flwr.simulation import run_simulation

from fedreuse.deploy import Lean, compression_mod

NODES, ROUNDS = 3, 6
GOAL = np.random.default_rng(1).normal(size=(200, 50)).astype(np.float32)
START = np.random.default_rng(2).normal(size=(200, 50)).astype(np.float32)

client = ClientApp(mods=[compression_mod])
server = ServerApp()


@client.train()
def train(msg: Message, context: Context) -> Message:
    """Go half the way to the optimum."""
    (model,) = msg.content["arrays"].to_numpy_ndarrays()
    step = model + np.float32(0.5) * (GOAL + np.float32(0.01 * context.node_config["partition-id"]) - model)
    metrics = MetricRecord({"num-examples": 10, "loss": float(np.linalg.norm(GOAL - model))})
    return Message(RecordDict({"arrays": ArrayRecord([step]), "metrics": metrics}), reply_to=msg)


@client.evaluate()
def evaluate(msg: Message, context: Context) -> Message:
    """Return the distance to the optimum."""
    (model,) = msg.content["arrays"].to_numpy_ndarrays()
    metrics = MetricRecord({"num-examples": 10, "loss": float(np.linalg.norm(GOAL - model))})
    return Message(RecordDict({"metrics": metrics}), reply_to=msg)


@server.main()
def main(grid: Grid, context: Context) -> None:
    """Run two strategies, one after the other."""
    nodes = {"min_available_nodes": NODES, "min_train_nodes": NODES, "min_evaluate_nodes": NODES}
    found = {"flwr": version("flwr"), "before": float(np.linalg.norm(GOAL - START))}
    for name, inner in (("FedAvg", FedAvg(**nodes)), ("FedAdam", FedAdam(eta=0.3, **nodes))):
        strategy = Lean(inner, budget=0.2)
        result = strategy.start(grid, ArrayRecord([START]), ROUNDS, timeout=60)
        (model,) = result.arrays.to_numpy_ndarrays()
        shares = {way: strategy.traffic.total(way) / strategy.traffic.total_dense(way) for way in ("down", "up")}
        held = result.evaluate_metrics_clientapp[ROUNDS]["loss"]
        found[name] = {"after": float(np.linalg.norm(GOAL - model)), "held": held, **shares}
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ["FEDREUSE_HOME"] = sys.argv[1]
    run_simulation(
        server,
        client,
        NODES,
        backend_config={"init_args": {"address": "local"}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
