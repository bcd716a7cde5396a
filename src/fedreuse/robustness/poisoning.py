"""Effects of an attack outside of messages: poisoned data, false example counts, and the attack's success rate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.learning.data import Split
from fedreuse.learning.metrics.accuracy import Accuracy
from fedreuse.learning.scoring import Scoring

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.model import Model
    from fedreuse.learning.task import PreparedTask
    from fedreuse.runs.federation import Federation

__all__ = ["claimed", "poisoned", "success_rate"]


def poisoned(prepared: PreparedTask, config: RunConfig) -> PreparedTask:
    """Return the task with poisoned training examples of the attacking clients; held-out examples are unchanged."""
    attack = config.attack
    if attack is None or not attack.poisons:
        return prepared
    data = prepared.data
    inputs, labels = np.array(data.train.inputs), np.array(data.train.labels)
    # Examples are poisoned in place by index, so an index must belong to one client only.
    if len(np.unique(prepared.training.indices)) < len(prepared.training.indices):
        raise ConfigError(
            "attack: clients share examples here, so honest clients would train on poisoned ones; use a partition that "
            "assigns each example to one client"
        )
    for client in sorted(config.bad_clients):
        own = prepared.training.of(client)
        rng = stream(config.seed, "attack on data", 0, client)
        inputs[own], labels[own] = attack.poison(inputs[own], labels[own], data.num_classes, rng)
    return replace(prepared, data=replace(data, train=Split(inputs, labels)))


def claimed(prepared: PreparedTask, config: RunConfig) -> np.ndarray:
    """Return the number of examples that each client reports; with node-local data the reports are already given."""
    sizes = prepared.training.sizes
    if config.attack is None or prepared.is_at_home:
        return sizes
    reported = sizes.copy()
    for client in config.bad_clients:
        reported[client] = config.attack.claim(int(sizes[client]))
    return reported


def success_rate(federation: Federation, model: Model, split: Split) -> float | None:
    """Return the share of examples on which a model gives the attacker's target; None for untargeted attacks."""
    attack = federation.config.attack
    goal = None if attack is None else attack.goal(split.inputs, split.labels)
    if goal is None or not len(goal[1]):
        return None
    metrics = federation.trainer.evaluate(model, Split(*goal), scoring=Scoring(Accuracy()))
    return metrics.mean_score
