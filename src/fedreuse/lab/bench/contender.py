"""Process that runs rounds of the engine or of the bare loop, or bare training steps, one at a time on request."""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy

from fedreuse.core.bounded import parse_json
from fedreuse.core.events import RoundDone, Started, Stop
from fedreuse.core.listener import Listener
from fedreuse.lab.bench.floor import BareLoop, rounds_alone, rounds_together
from fedreuse.lab.bench.peer_work import CnnNetwork
from fedreuse.lab.bench.turn import Turn
from fedreuse.lab.bench.workload import configure
from fedreuse.runs.facts import digest_of_model
from fedreuse.runs.launch import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fedreuse.config.run_config import RunConfig

__all__ = ["play_engine", "play_floor", "play_steps"]

_STEPS = 20


class _InTurn(Listener):
    """Listener that pauses a run between rounds until its turn, and stops it when no further round is requested."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def started(self, event: Started) -> Stop | None:  # noqa: ARG002 - the content of the event is not needed
        return self._wait()

    def round_done(self, event: RoundDone) -> Stop | None:
        row, work = event.row, event.work
        self._turn.done(
            fresh=row["fresh"], reused=row["reused"], examples=work.training_examples, client_seconds=work.seconds
        )
        return self._wait()

    def _wait(self) -> Stop | None:
        return None if self._turn.wait() else Stop("no further round is requested")


def play_engine(turn: Turn, config: RunConfig) -> None:
    """Run the engine with ledger and checkpoints, round by round."""
    with tempfile.TemporaryDirectory(prefix="fedreuse-bench-") as folder:
        run(config, Path(folder) / "run", listeners=[_InTurn(turn)])


def play_floor(turn: Turn, config: RunConfig, workers: int) -> None:
    """Run the bare loop, round by round; 0 workers: in this process."""
    rounds = rounds_together(config, workers) if workers else rounds_alone(config)
    while turn.wait():
        model = next(rounds)
        turn.done(digest=digest_of_model(model))
    rounds.close()  # type: ignore[attr-defined]  # a generator: ends its workers


def play_steps(turn: Turn, config: RunConfig, is_tuned: bool) -> None:
    """Run bare steps on real batches: tuned, or with the usual network and optimizer."""
    step = _tuned_step(config) if is_tuned else _plain_step(config)
    while turn.wait():
        for _ in range(_STEPS):
            next(step)
        turn.done(steps=_STEPS)


def _tuned_step(config: RunConfig) -> Iterator[None]:
    loop = BareLoop(config)
    network = loop.network
    step = config.local.optimizer.stepper_of(network, config.local.optimizer.lr)
    network.module.train()
    for images, labels in _batches(loop):
        network.gradient.zero_()
        outputs = network.module(images.contiguous(memory_format=torch.channels_last))
        network.backward(cross_entropy(outputs, labels))
        step()
        yield


def _plain_step(config: RunConfig) -> Iterator[None]:
    loop = BareLoop(config, keeps_memory=False)
    sgd, layers = config.local.optimizer, config.to_plain()["network"]
    channels, height, width = loop.inputs.shape[1:]
    network = CnnNetwork((channels, height, width), layers["width"], layers["hidden"], is_tuned=False)
    optimizer = torch.optim.SGD(
        network.parameters(), sgd.lr, sgd.momentum, weight_decay=getattr(sgd, "weight_decay", 0.0)
    )
    network.train()
    for images, labels in _batches(loop):
        optimizer.zero_grad()
        cross_entropy(network(images), labels).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        yield


def _batches(loop: BareLoop) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield full batches of the first examples repeatedly; the same for both variants."""
    size = loop.config.local.batch
    for start in cycle(range(0, min(len(loop.labels), 50 * size) - size + 1, size)):
        at = slice(start, start + size)
        yield loop.inputs[at].float().div_(255).sub_(loop.mean).div_(loop.std), loop.labels[at]


def main(task: Mapping[str, Any]) -> None:
    """Run the task until no further round is requested."""
    turn = Turn()
    config = configure(task["workload"], task["rounds"], task.get("overrides", ()))
    if task["kind"] == "engine":
        play_engine(turn, config)
    elif task["kind"] == "floor":
        play_floor(turn, config, task["workers"])
    else:
        play_steps(turn, config, task["kind"] == "tuned step")


if __name__ == "__main__":
    main(parse_json(sys.argv[1]))
