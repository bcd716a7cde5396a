"""What the bad clients of a run do outside of its messages: to their data, in their counts, and how far they got."""

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
    """The task with the training examples of bad clients as they use them; what they hold out stays as it is."""
    attack = config.attack
    if attack is None or not attack.poisons:
        return prepared
    data = prepared.data
    inputs, labels = np.array(data.train.inputs), np.array(data.train.labels)
    if len(np.unique(prepared.training.indices)) < len(prepared.training.indices):
        raise ConfigError(
            "attack: clients share examples here, so what one poisons others would train on; deal each once"
        )
    for client in sorted(config.bad_clients):
        own = prepared.training.of(client)
        rng = stream(config.seed, "attack on data", 0, client)
        inputs[own], labels[own] = attack.poison(inputs[own], labels[own], data.num_classes, rng)
    return replace(prepared, data=replace(data, train=Split(inputs, labels)))


def claimed(prepared: PreparedTask, config: RunConfig) -> np.ndarray:
    """Numbers of examples by client, as the clients tell them; where data stay at home, the server was told."""
    sizes = prepared.training.sizes
    if config.attack is None or prepared.is_at_home:
        return sizes
    told = sizes.copy()
    for client in config.bad_clients:
        told[client] = config.attack.claim(int(sizes[client]))
    return told


def success_rate(federation: Federation, model: Model, split: Split) -> float | None:
    """Share of examples on which a model does what the attacker wants; None if that is only to spoil it."""
    attack = federation.config.attack
    goal = None if attack is None else attack.goal(split.inputs, split.labels)
    if goal is None or not len(goal[1]):
        return None
    found = federation.trainer.evaluate(model, Split(*goal), scoring=Scoring(Accuracy()))
    return found.mean_score
