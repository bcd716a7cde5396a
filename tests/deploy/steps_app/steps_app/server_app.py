"""Server app: FedAvg in Lean; it writes log, process, a line per round and the result into a folder."""

import json
import logging
import os
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, MetricRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

from fedreuse.deploy import Lean

SHAPE = (500, 200)
app = ServerApp()


@app.main()
def main(grid, context):
    run = context.run_config
    folder, nodes = Path(run["folder"]), run["nodes"]
    logging.getLogger("flwr").addHandler(logging.FileHandler(folder / "log.txt"))
    (folder / "server.pid").write_text(str(os.getpid()))
    least = {"min_available_nodes": nodes, "min_train_nodes": 1, "min_evaluate_nodes": 1}
    strategy = Lean(FedAvg(**least), budget=run["budget"], folder=folder / "run")

    def evaluate(number, arrays):
        (model,) = arrays.to_numpy_ndarrays()
        away = float(np.linalg.norm(np.random.default_rng(1).normal(size=SHAPE) - model))
        with (folder / "rounds.jsonl").open("a") as file:
            file.write(json.dumps({"round": number, "distance": away}) + "\n")
        return MetricRecord({"distance": away})

    initial = ArrayRecord([np.zeros(SHAPE, np.float32)])
    result = strategy.start(grid, initial, run["rounds"], evaluate_fn=evaluate)
    evaluated = {number: dict(record) for number, record in result.evaluate_metrics_clientapp.items()}
    (folder / "result.json").write_text(json.dumps({"evaluated": evaluated}))
