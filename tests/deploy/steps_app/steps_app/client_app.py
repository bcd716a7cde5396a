"""Client app: half the way to an optimum of the node's own.

Files in the node's folder, that of its `store`, say what goes wrong: `hold-K` stops the K-th training until the file is
gone, `no_mod`, `old_version` and `other_model` change every message. `trained` counts.
"""

import time
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import fedreuse
from fedreuse.deploy import compression_mod


def home_of(context):
    return Path(context.node_config["store"]).parent


def mod(message, context, call_next):
    home = home_of(context)
    if (home / "old_version").exists():
        fedreuse.__version__ = "0.0.1"
    return call_next(message, context) if (home / "no_mod").exists() else compression_mod(message, context, call_next)


app = ClientApp(mods=[mod])


@app.train()
def train(message, context):
    home = home_of(context)
    count = home / "trained"
    number = 1 + (int(count.read_text()) if count.exists() else 0)
    hold = home / f"hold-{number}"
    if hold.exists():
        (home / f"holding-{number}").touch()
    while hold.exists():
        time.sleep(0.1)
    (model,) = message.content["arrays"].to_numpy_ndarrays()
    goal = np.random.default_rng(1).normal(size=model.shape) + 0.01 * context.node_config["partition-id"]
    trained = (model + 0.5 * (goal - model)).astype(np.float32)
    count.write_text(str(number))
    arrays = ArrayRecord([trained[:7] if (home / "other_model").exists() else trained])
    return Message(
        RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 10, "loss": distance(goal, model)})}),
        reply_to=message,
    )


@app.evaluate()
def evaluate(message, context):
    (model,) = message.content["arrays"].to_numpy_ndarrays()
    goal = np.random.default_rng(1).normal(size=model.shape)
    return Message(
        RecordDict({"metrics": MetricRecord({"num-examples": 10, "loss": distance(goal, model)})}), reply_to=message
    )


def distance(left, right):
    return float(np.linalg.norm(left - right))
