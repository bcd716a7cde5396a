"""Benchmark of the training step of ResNet-18: the step of a run beside the same step in plain torch."""

from __future__ import annotations

from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedreuse.lab.bench.timing import interleave, ratios, shown
from fedreuse.learning.allocator import keep_freed_memory
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.resnet18 import ResNet18
from fedreuse.learning.networks.small_maps import SmallMapConv2d
from fedreuse.learning.optimizers import Sgd
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fedreuse.lab.bench.results import Row

__all__ = ["BATCHES", "plain_network", "run", "tables"]

BATCHES = (128, 64)
_SHAPE, _NUM_CLASSES = (3, 32, 32), 10
_STEPS = 3
"""Steps in a pass."""
_PLAIN, _FLAT, _OURS = "plain torch", "flat vectors, channels last", "and products on small maps"


def run(batches: Sequence[int] = BATCHES, repeats: int = 15, tell: Callable[[str], object] = str) -> list[Row]:
    """Return the seconds per step of each contender and batch size, one number per pass.

    All contenders take turns in this process with one thread, and freed memory stays with the process for all of them.
    """
    torch.set_num_threads(1)
    keep_freed_memory()
    rows: list[Row] = []
    for batch in batches:
        steps = _steps(batch)
        for step in steps.values():
            step()  # the first allocates
        cpu_seconds: dict[str, list[float]] = {name: [] for name in steps}
        taken = interleave({name: partial(_time, step, cpu_seconds[name]) for name, step in steps.items()}, repeats)
        for name, seconds in taken.items():
            tell(f"batch {batch}, {name}: {shown([1000 * second for second in seconds], 0)} ms")
            rows.append({"contender": name, "batch": batch, "seconds": seconds, "cpu_seconds": cpu_seconds[name]})
    return rows


def plain_network() -> nn.Module:
    """Return ResNet-18 with torch's own convolutions."""
    module = ResNet18().build(_SHAPE, _NUM_CLASSES)
    for layer in module.modules():
        if isinstance(layer, SmallMapConv2d):
            layer.__class__ = nn.Conv2d  # type: ignore[assignment]  # it only adds a method
    return module


def _steps(batch: int) -> dict[str, Callable[[], None]]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch, *_SHAPE, generator=generator)
    labels = torch.randint(0, _NUM_CLASSES, (batch,), generator=generator)
    rule = Sgd()

    def plain() -> Callable[[], None]:
        network = plain_network()
        optimizer = torch.optim.SGD(network.parameters(), rule.lr, rule.momentum, weight_decay=rule.weight_decay)

        def step() -> None:
            optimizer.zero_grad()
            cross_entropy(network(images), labels).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimizer.step()

        return step

    def flat(module: nn.Module) -> Callable[[], None]:
        network = FlatNetwork(module)
        inputs = images.contiguous(memory_format=torch.channels_last)
        update = rule.stepper_of(network, rule.lr)

        def step() -> None:
            network.gradient.zero_()
            network.backward(cross_entropy(network.module(inputs), labels))
            update()

        return step

    return {_PLAIN: plain(), _FLAT: flat(plain_network()), _OURS: flat(ResNet18().build(_SHAPE, _NUM_CLASSES))}


def _time(step: Callable[[], None], cpu_seconds: list[float]) -> float:
    began, before = perf_counter(), process_time()
    for _ in range(_STEPS):
        step()
    cpu_seconds.append((process_time() - before) / _STEPS)
    return (perf_counter() - began) / _STEPS


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return milliseconds per step, and the ratio of examples per second to plain torch."""
    plain = {row["batch"]: row for row in rows if row["contender"] == _PLAIN}
    cells = tuple(
        (
            str(row["batch"]),
            str(row["contender"]),
            *(shown([1000 * second for second in row[key]], 0) for key in ("seconds", "cpu_seconds")),
            *(shown(ratios(plain[row["batch"]][key], row[key])) for key in ("seconds", "cpu_seconds")),
        )
        for row in rows
    )
    headers = ("batch", "step", "ms", "processor ms", "times plain", "times plain,\nprocessor time")
    legend = (
        "One step of ResNet-18 on 32x32 images (forward, backward, SGD with momentum and weight decay), one thread: "
        "median over passes, with the range. Times plain: examples per second over those of plain torch in the same "
        "pass. Each line adds to the one above it. Freed memory stays with the process for all."
    )
    return [Table("Training step", headers, cells, legend)]
