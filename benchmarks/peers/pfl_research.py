"""pfl-research on the same work: one process with several threads, or one process per core over torch.distributed.

Runs in an environment of its own, with torch, numpy and pfl; of this package it imports its neighbours alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch.nn import functional

from fedreuse.lab.bench.peer_work import PeerWork
from fedreuse.lab.bench.turn import Turn

__all__ = ["main"]


class _Rounds(TrainingProcessCallback):  # type: ignore[misc]  # pfl is not typed here
    """Lets an iteration begin when it is its turn; the first process passes the word on to the others."""

    def __init__(self, turn: Turn, work: PeerWork, others: list[subprocess.Popen[str]]) -> None:
        self._turn, self._work, self._others = turn, work, others

    def on_train_begin(self, *, model: Any) -> Metrics:
        del model
        self._go_on()
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Any, model: Any, *, central_iteration: int
    ) -> tuple[bool, Any]:
        del aggregate_metrics, model
        cohort = self._work.cohorts[central_iteration]
        self._turn.done(examples=self._work.examples(cohort), clients=len(cohort))
        return not self._go_on(), Metrics()

    def _go_on(self) -> bool:
        is_wanted = self._turn.wait()
        for other in self._others:
            assert other.stdin is not None
            other.stdin.write("go\n" if is_wanted else "stop\n")
            other.stdin.flush()
        return is_wanted


def _start_others(task: Mapping[str, Any]) -> list[subprocess.Popen[str]]:
    """The other processes of a distributed run: the same module, with a higher rank."""
    if task["processes"] == 1 or "PFL_WORKER_RANK" in os.environ:
        return []
    ports = range(task["port"], task["port"] + task["processes"])
    os.environ["PFL_WORKER_ADDRESSES"] = ",".join(f"127.0.0.1:{port}" for port in ports)
    os.environ["PFL_WORKER_RANK"] = "0"
    words = [sys.executable, "-m", "benchmarks.peers.pfl_research", json.dumps(task)]
    return [
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PFL_WORKER_RANK": str(rank)},
        )
        for rank in range(1, task["processes"])
    ]


def _model(work: PeerWork, is_tuned: bool) -> PyTorchModel:
    network = work.network(is_tuned)

    def loss(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        network.train()
        return functional.cross_entropy(network(images), labels)

    def metrics(images: torch.Tensor, labels: torch.Tensor) -> dict[str, Weighted]:
        network.eval()
        with torch.no_grad():
            right = int((network(images).argmax(1) == labels).sum())
        return {"accuracy": Weighted(right, len(labels))}

    network.loss, network.metrics = loss, metrics  # type: ignore[assignment]  # what pfl asks of a module
    settings = work.training
    momentum, decay = settings["momentum"], settings["weight_decay"]
    return PyTorchModel(
        model=network,
        local_optimizer_create=lambda parameters, lr: torch.optim.SGD(parameters, lr, momentum, weight_decay=decay),
        central_optimizer=torch.optim.SGD(network.parameters(), lr=1.0),
    )


def main(task: Mapping[str, Any]) -> None:
    """Run rounds until the bench stops asking."""
    turn = Turn()
    others = _start_others(task)
    torch.set_num_threads(task["threads"])
    work, is_tuned = PeerWork.load(task["work"]), task["is_tuned"]
    model = _model(work, is_tuned)
    order: Iterator[int] = chain.from_iterable(work.cohorts.tolist() * 1000)
    users = {user: Dataset(work.client(user, is_tuned), user_id=user) for user in range(len(work.offsets) - 1)}
    sizes = {user: len(dataset) for user, dataset in users.items()}
    data = FederatedDataset(users.__getitem__, lambda: next(order), sizes)
    count = len(work.cohorts)
    settings = work.training
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=count,
            evaluation_frequency=count,
            train_cohort_size=work.cohorts.shape[1],
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(
            local_num_epochs=int(settings["epochs"]),
            local_learning_rate=settings["lr"],
            local_batch_size=int(settings["batch"]),
        ),
        callbacks=[_Rounds(turn, work, others)],
    )
    for other in others:
        other.wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
