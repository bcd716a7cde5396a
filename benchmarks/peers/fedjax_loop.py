"""FedJAX on many small clients: federated averaging of a linear classifier, with its `jit` backend.

Runs in an environment of its own, with jax, numpy and fedjax; of this package it imports its neighbours alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import pairwise
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedreuse.lab.bench.turn import Turn

for _name in ("tree_map", "tree_leaves", "tree_flatten", "tree_unflatten"):
    if not hasattr(jax, _name):  # FedJAX 0.0.17 uses names that jax removed
        setattr(jax, _name, getattr(jax.tree_util, _name))

import fedjax  # noqa: E402 - needs the names above

__all__ = ["main"]


def main(task: Mapping[str, Any]) -> None:
    """Run turns of several rounds until no further turn is requested."""
    turn = Turn()
    with np.load(task["work"], allow_pickle=False) as stored:
        inputs, labels, cohorts = stored["inputs"], stored["labels"], stored["cohorts"]
        index = [stored["indices"][start:stop] for start, stop in pairwise(stored["offsets"])]
    clients = [fedjax.ClientDataset({"x": inputs[at], "y": labels[at]}) for at in index]

    def loss(weights: Any, batch: Any, rng: Any) -> Any:
        del rng
        scores = batch["x"] @ weights["w"] + weights["b"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), batch["y"][:, None], axis=1))

    fedjax.set_for_each_client_backend("jit")
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        jax.grad(loss),
        fedjax.optimizers.sgd(learning_rate=task["lr"]),
        fedjax.optimizers.sgd(learning_rate=1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=task["batch"], num_epochs=task["epochs"], drop_remainder=False),
    )
    classes = int(labels.max()) + 1
    state = algorithm.init({"w": jnp.zeros((inputs.shape[1], classes)), "b": jnp.zeros(classes)})
    key, rounds = jax.random.PRNGKey(0), iter(cohorts)
    while turn.wait():
        began, count = process_time(), 0
        for _ in range(task["rounds_per_turn"]):
            cohort = next(rounds)
            keys = jax.random.split(key, len(cohort) + 1)
            key = keys[0]
            state, _ = algorithm.apply(
                state, [(int(client), clients[client], one) for client, one in zip(cohort, keys[1:], strict=True)]
            )
            jax.block_until_ready(state.params)
            count += len(cohort)
        turn.done(clients=count, process_seconds=process_time() - began)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
