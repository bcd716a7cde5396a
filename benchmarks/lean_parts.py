"""`lean` on the confirmed tasks, beside itself without one of its parts: for its card and docs/decisions.

python -m benchmarks.lean_parts --out docs/bench/lean-parts.json [TASK...]

undamped      without the damped server step
one size      the first difference to a client has the bytes of every other one
score         best validation score (%) of a run, mean over the development seeds; the test split stays closed
share         bytes of all messages relative to dense FedAvg's
arrives       share of the server's move so far that a first difference after round 1 delivers, 1 - |w - h| / |w - w_1|:
              w the server's model, w_1 the initial one, h the client's model after the message; a mean over them

The tasks are those of configs/confirm/lean*.yaml with half of the examples and a third to half of the rounds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import fedreuse
from fedreuse.compression.links.delta import Delta
from fedreuse.core.tensors import dot, sub
from fedreuse.runs.federation import assemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.events import Started

__all__ = ["main", "played", "variants"]

BASE = Path(__file__).parents[1] / "configs" / "tune" / "closest" / "base.yaml"
SEEDS = (1, 2)
TASKS: dict[str, tuple[int, tuple[float, ...]]] = {
    "fashion_mnist": (20, (0.01,)),
    "mnist": (10, (0.02,)),
}
"""Rounds and budgets of each task."""


def variants(task: str, seed: int, changes: tuple[str, ...] = ()) -> Iterator[tuple[str, RunConfig]]:
    """Yield names and configurations of the runs of one task and seed."""
    rounds, budgets = TASKS[task]
    fixed = [
        f"task.name={task}", "task.limit=6000", f"rounds.count={rounds}", f"seed={seed}", "uplink=null", "test=sealed",
        "keep.model=best", "executor=serial", *changes,
    ]  # fmt: skip
    yield "dense FedAvg", fedreuse.load(BASE, [*fixed, "method=fedavg"])
    for budget in budgets:
        config = fedreuse.load(BASE, [*fixed, f"method={{name: lean, budget: {budget}}}"])
        yield f"lean {budget}", config
        plain = config.to_plain()
        resolved = assemble(config).recipe.to_plain()
        step = resolved["method"]["step"]
        damped = step["inner"]
        assert damped["name"] == "damped"
        method = {**resolved["method"], "step": {**step, "inner": damped["inner"]}}
        yield f"lean {budget}, undamped", fedreuse.load({**plain, **resolved, "method": method})
        with patch("fedreuse.methods.byte_plan._FIRST_SHARE", 0.0):
            resolved = assemble(config).recipe.to_plain()
        yield f"lean {budget}, one size", fedreuse.load({**plain, **resolved})


@dataclass(frozen=True)
class _Start(fedreuse.Listener):
    """Calls a function when the first round starts: before it, links send samples to plan the budget."""

    then: Callable[[], object]

    def started(self, event: Started) -> None:
        del event
        self.then()


def played(config: RunConfig) -> dict[str, float]:
    """Run a configuration; return its score, its share of dense FedAvg's bytes, and what first differences deliver."""
    arrived: list[float] = []
    send = Delta.send

    def watched(link: Delta, tensors: Any, state: Any, context: Any) -> Any:
        parcel, after = send(link, tensors, state, context)
        if state is None and context.initial is not None and len(tensors.schema):
            moved, lacks = sub(tensors, context.initial), sub(tensors, after)
            if length := dot(moved, moved) ** 0.5:
                arrived.append(1 - dot(lacks, lacks) ** 0.5 / length)
        return parcel, after

    with TemporaryDirectory() as folder, patch.object(Delta, "send", watched):
        result = fedreuse.run(config, Path(folder) / "run", listeners=[_Start(arrived.clear)])
        share = 1 - float(result.traffic()["messages"].saving())
        score = 100 * float(result.summary["validation_score"])
    facts = {"score": score, "share": share}
    return facts | ({"arrives": fmean(arrived)} if arrived else {})


def main(arguments: list[str] | None = None) -> None:
    """Run the variants of some tasks, print their means over the seeds, and store them beside those of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="all by default")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    rows = []
    for task in given.tasks or TASKS:
        found: dict[str, list[dict[str, float]]] = {}
        for seed in SEEDS:
            for name, config in variants(task, seed):
                found.setdefault(name, []).append(played(config))
                print(task, seed, name, found[name][-1], flush=True)  # noqa: T201 - progress
        for name, each in found.items():
            means = {key: round(fmean(one[key] for one in each), 4) for key in each[0]}
            rows.append({"task": task, "variant": name, "seeds": len(each), **means})
    before = json.loads(given.out.read_text())["rows"] if given.out.exists() else []
    tasks = {row["task"] for row in rows}
    kept = [row for row in before if row["task"] not in tasks]
    given.out.write_text(json.dumps({"rows": [*kept, *rows]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
