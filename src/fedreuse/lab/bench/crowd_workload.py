"""Process that trains many clients of 20 examples each: with the engine, or in a plain PyTorch loop."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedreuse.config.run_config import load
from fedreuse.core.events import RoundDone, Started, Stop
from fedreuse.core.listener import Listener
from fedreuse.core.randomness import stream
from fedreuse.engine.schedule import Schedule
from fedreuse.lab.bench.population_workload import memory_of_process
from fedreuse.lab.bench.turn import Turn
from fedreuse.learning.data import Data, Dataset, Split
from fedreuse.learning.networks.lstm import Lstm
from fedreuse.learning.trainer import initial_network
from fedreuse.runs.launch import run

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig

__all__ = ["NETWORKS", "ROUNDS_PER_TURN", "Characters", "configure", "play_engine", "play_loop", "play_products"]

EXAMPLES_EACH = 20
ROUNDS_PER_TURN = 5
"""Rounds of a turn: the processor time of a single one is close to the resolution of its clock."""
_CHARACTERS = {"name": "fedreuse.lab.bench.crowd_workload:Characters"}
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "linear": {"task": {"shape": [64]}, "network": {"name": "mlp", "hidden": []}, "cohort": 200},
    "mlp": {"task": {"shape": [64]}, "network": {"name": "mlp", "hidden": [96]}, "cohort": 200},
    "cnn": {
        "task": {"shape": [1, 28, 28]},
        "network": {"name": "cnn", "width": 8, "hidden": 64, "norm": "group"},
        "cohort": 64,
    },
    "lstm": {"task": _CHARACTERS, "network": {"name": "lstm"}, "cohort": 64},
}
"""Task, network and cohort by name: a linear classifier, an MLP, a small CNN, and an LSTM over characters."""


@dataclass(frozen=True)
class Characters(Dataset):
    """Random characters in windows as long as those of Shakespeare by role, labelled with their successors.

    Args:
        examples: Number of training windows.
        length: Characters of a window.
        characters: Number of distinct characters.
    """

    examples: int = 20_000
    length: int = 80
    characters: int = 80

    def load(self, folder: Path | None) -> Data:
        """Generate the data; the same fields give the same bytes."""
        del folder  # nothing is read
        return Data("characters", self.characters, self._split("train", self.examples), self._split("test", 100))

    def _split(self, purpose: str, windows: int) -> Split:
        drawn = stream(0, f"characters {purpose}").integers(self.characters, size=(windows, self.length + 1))
        return Split(drawn[:, :-1], drawn[:, 1:])


def configure(
    network: str, clients: int, rounds: int, overrides: Sequence[str] = (), cohort: int | None = None
) -> RunConfig:
    """Return a run of FedAvg in this process, evaluated in the first and the last round only."""
    work = NETWORKS[network]
    task = {
        "name": "synthetic",
        "examples": EXAMPLES_EACH * clients,
        "clients": clients,
        "partition": {"name": "iid"},
        "validation": 0.0,
        **work["task"],
    }
    sgd = {"name": "sgd", "lr": 0.05, "momentum": 0.0, "weight_decay": 0.0}
    plain = {
        "task": task,
        "network": work["network"],
        "local": {"epochs": 1, "batch": 10, "optimizer": sgd},
        "rounds": {"count": rounds, "cohort": cohort or min(work["cohort"], clients), "evaluate_every": rounds},
        "executor": {"name": "serial"},
        "method": {"name": "fedavg"},
        "seed": 101,
    }
    return load(plain, list(overrides))


class _InTurn(Listener):
    """Listener that pauses a run between turns of several rounds, and reports each turn."""

    def __init__(self, turn: Turn, folder: Path, rounds_per_turn: int) -> None:
        self._turn, self._folder, self._per_turn = turn, folder, rounds_per_turn

    def started(self, event: Started) -> Stop | None:  # noqa: ARG002 - the content of the event is not needed
        return self._wait()

    def round_done(self, event: RoundDone) -> Stop | None:
        self._clients += event.row["fresh"]
        self._client_seconds += event.work.seconds
        if event.row["round"] % self._per_turn:
            return None
        self._turn.done(
            clients=self._clients,
            process_seconds=process_time() - self._began,
            client_seconds=self._client_seconds,
            peak_bytes=memory_of_process("VmHWM"),
            anonymous_bytes=memory_of_process("RssAnon"),
            journal_bytes=sum(path.stat().st_size for path in self._folder.glob("checkpoint.sqlite*")),
        )
        return self._wait()

    def _wait(self) -> Stop | None:
        is_requested = self._turn.wait()
        self._began, self._clients, self._client_seconds = process_time(), 0, 0.0
        return None if is_requested else Stop("no further round is requested")


def play_engine(turn: Turn, config: RunConfig, rounds_per_turn: int) -> None:
    """Run the engine with ledger and a checkpoint every round."""
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-") as folder:
        run(config, Path(folder) / "run", listeners=[_InTurn(turn, Path(folder) / "run", rounds_per_turn)])


def play_loop(turn: Turn, config: RunConfig, rounds_per_turn: int) -> None:
    """Run local SGD and the mean of the models as plain PyTorch, without messages, ledger and checkpoints."""
    rounds = _plain_rounds(config)
    while turn.wait():
        began = process_time()
        clients = sum(next(rounds) for _ in range(rounds_per_turn))
        turn.done(clients=clients, process_seconds=process_time() - began)


def _plain_rounds(config: RunConfig) -> Iterator[int]:
    """Yield the number of clients of each round."""
    torch.set_num_threads(1)
    prepared, local = config.task.prepare(config.seed), config.local
    data, clients = prepared.data, prepared.training
    inputs = torch.from_numpy(np.array(data.train.inputs))
    labels = torch.from_numpy(data.train.labels.astype(np.int64))
    network = initial_network(config.network, data.shape, data.num_classes, config.seed).module
    state = {name: value.clone() for name, value in network.state_dict().items()}
    schedule = config.rounds
    cohorts = Schedule.draw(config.task.clients, schedule.count, schedule.cohort, schedule.availability, config.seed)
    shuffle = np.random.default_rng(config.seed)
    network.train()
    for cohort in cohorts.cohorts:
        total = {name: torch.zeros_like(value) for name, value in state.items()}
        for client in cohort:
            network.load_state_dict(state)
            optimizer = torch.optim.SGD(network.parameters(), local.optimizer.lr)
            index = clients.of(client)
            for _ in range(local.epochs):
                order = torch.from_numpy(index[shuffle.permutation(len(index))])
                for at in torch.split(order, local.batch):
                    optimizer.zero_grad()
                    outputs = network(inputs[at])
                    loss = torch.nn.functional.cross_entropy(outputs.flatten(0, -2), labels[at].flatten())
                    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                    optimizer.step()
            for name, value in network.state_dict().items():
                total[name] += value
        state = {name: value / len(cohort) for name, value in total.items()}
        yield len(cohort)


def play_products(turn: Turn, config: RunConfig, rounds_per_turn: int) -> None:
    """Compute the matrix products of an LSTM that is trained together, and nothing else.

    Products by the embedding are left out: the rows of a table over the tokens could take their place.
    """
    torch.set_num_threads(1)
    network, together, cohort = config.network, 16, config.rounds.cohort
    assert isinstance(network, Lstm)
    width, length, classes, batch = network.width, Characters.length, Characters.characters, config.local.batch
    state, gates = torch.randn(together, batch, width), torch.randn(together, batch, 4 * width)
    states, all_gates = torch.randn(together, batch * length, width), torch.randn(together, batch * length, 4 * width)
    scores = torch.randn(together, batch * length, classes)
    recurrent, head = torch.randn(together, 4 * width, width), torch.randn(together, classes, width)
    while turn.wait():
        began = process_time()
        for _ in range(rounds_per_turn * cohort // together * EXAMPLES_EACH // batch):
            for _ in range(length):
                torch.bmm(state, recurrent.transpose(1, 2))
                torch.bmm(gates, recurrent)
            torch.bmm(all_gates.transpose(1, 2), states)
            torch.bmm(states, head.transpose(1, 2))
            torch.bmm(scores, head)
            torch.bmm(scores.transpose(1, 2), states)
        turn.done(clients=rounds_per_turn * cohort // together * together, process_seconds=process_time() - began)


def main(task: Mapping[str, Any]) -> None:
    """Run the task until no further turn is requested."""
    turn, per_turn = Turn(), task["rounds_per_turn"]
    config = configure(task["network"], task["clients"], task["rounds"], task.get("overrides", ()), task.get("cohort"))
    if task["kind"] == "engine":
        play_engine(turn, config, per_turn)
    elif task["kind"] == "products":
        play_products(turn, config, per_turn)
    else:
        play_loop(turn, config, per_turn)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
