"""Bare PyTorch loop as the baseline: local SGD and a weighted mean, in this process or in worker processes.

Clients, batches, kernels, assignment (largest client first, to the next free worker) and round barrier are those of the
engine; there are no messages, codecs, ledger, checkpoints or faults. The final model is bit-identical to that of dense
FedAvg in the engine.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from fedreuse.config.run_config import load
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors
from fedreuse.engine.schedule import Schedule
from fedreuse.learning.allocator import keep_freed_memory
from fedreuse.learning.augmentation import crop_and_flip
from fedreuse.runs.federation import assemble

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fedreuse.config.run_config import RunConfig

__all__ = ["BareLoop", "average", "rounds_alone", "rounds_together"]

_loop: BareLoop
"""The loop of a worker process."""


class BareLoop:
    """A network, the data as tensors, and local SGD on them."""

    def __init__(self, config: RunConfig, keeps_memory: bool = True) -> None:
        """Load everything into memory; `keeps_memory` is one of the tuned settings."""
        torch.set_num_threads(1)
        if keeps_memory:
            keep_freed_memory()
        federation = assemble(config)
        data = federation.prepared.data
        self.config, self.clients, self.is_augmented = config, federation.prepared.training, data.is_augmented
        self.network = federation.network
        self.inputs = torch.from_numpy(np.array(data.train.inputs))
        self.labels = torch.from_numpy(data.train.labels.astype(np.int64))
        self.mean, self.std = (torch.tensor(numbers).view(1, -1, 1, 1) for numbers in (data.mean, data.std))

    def train(self, client: int, round_number: int, start: Model) -> Model:
        """Run the local epochs of one client, and return its model."""
        network, local, seed = self.network, self.config.local, self.config.seed
        network.load(start)
        network.module.train()
        step = local.optimizer.stepper_of(network, local.optimizer.lr)
        index = self.clients.of(client)
        shuffle = stream(seed, "batches", round_number, client)
        augment = stream(seed, "augment batches", round_number, client)
        for _ in range(local.epochs):
            order = torch.from_numpy(index[shuffle.permutation(len(index))])
            for at in torch.split(order, local.batch):
                if len(at) == 1:
                    continue  # BatchNorm cannot train on it
                images = crop_and_flip(self.inputs[at], augment) if self.is_augmented else self.inputs[at]
                images = images.float().div_(255).sub_(self.mean).div_(self.std)
                network.gradient.zero_()
                outputs = network.module(images.contiguous(memory_format=torch.channels_last))
                network.backward(cross_entropy(outputs, self.labels[at]))
                step()
        return network.read()


def average(start: Model, trained: Mapping[int, Model], examples: np.ndarray) -> Model:
    """Return start plus the mean update, weighted by examples, summed in double precision in client order."""
    total = sum(int(examples[client]) for client in trained)

    def mean(role: str) -> Tensors:
        before: Tensors = getattr(start, role)
        update = np.zeros(len(before.values))
        for client in sorted(trained):
            difference = getattr(trained[client], role).values - before.values
            update += difference.astype(np.float64) * (int(examples[client]) / total)
        rounded = np.rint(update) if role == "counters" else update
        return Tensors(before.schema, before.values + rounded.astype(before.values.dtype))

    return Model(mean("weights"), mean("buffers"), mean("counters"))


def rounds_alone(config: RunConfig) -> Iterator[Model]:
    """Yield the model after every round, one client after another in this process."""
    loop = BareLoop(config)
    model, sizes = loop.network.read(), loop.clients.sizes
    for number, cohort in enumerate(_cohorts(config), start=1):
        model = average(model, {client: loop.train(client, number, model) for client in cohort}, sizes)
        yield model


def rounds_together(config: RunConfig, workers: int) -> Iterator[Model]:
    """Yield the model after every round, with clients in worker processes: the largest first, to the next free one."""
    loop = BareLoop(config)
    model, sizes = loop.network.read(), loop.clients.sizes
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, _begin, (config.to_plain(),)) as pool:
        for number, cohort in enumerate(_cohorts(config), start=1):
            queue = sorted(cohort, key=lambda client: -sizes[client])
            futures = {client: pool.submit(_train, client, number, model) for client in queue}
            model = average(model, {client: future.result() for client, future in futures.items()}, sizes)
            yield model


def _begin(plain: Mapping[str, Any]) -> None:
    global _loop
    _loop = BareLoop(load(plain))


def _train(client: int, number: int, start: Model) -> Model:
    return _loop.train(client, number, start)


def _cohorts(config: RunConfig) -> tuple[tuple[int, ...], ...]:
    rounds = config.rounds
    return Schedule.draw(config.task.clients, rounds.count, rounds.cohort, rounds.availability, config.seed).cohorts
