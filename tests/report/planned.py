"""A study with a plan, made by hand: run directories without torch, the list of runs, and the registered plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedreuse.core.registry import parse
from fedreuse.lab.plans.plan import Plan
from fedreuse.lab.plans.record import register
from tests.report.runs import write_run

SEEDS = (401, 402, 403, 404, 405)
SAME = {"of": "A", "against": "B", "test": "equivalence", "margin": 0.05}
SCORES = {"A": (0.80, 0.82, 0.81, 0.83, 0.80), "B": (0.79, 0.82, 0.80, 0.81, 0.80)}


def write_planned(
    place: Path,
    scores: Mapping[str | tuple[str, ...], Sequence[float]] | None = None,
    plan: Mapping[str, Any] | None = None,
    axes: Sequence[str] = ("method",),
    **options: Any,
) -> Path:
    """One run per cell and seed; a cell is the label of the one axis, or a tuple of the labels of all."""
    asked: Plan = parse(Plan, plan or {"contrasts": [SAME]}, "plan")
    entries: list[dict[str, Any]] = []
    cells = [((cell,) if isinstance(cell, str) else cell, of_seeds) for cell, of_seeds in (scores or SCORES).items()]
    for cell, of_seeds in cells:
        for seed, score in zip(SEEDS, of_seeds, strict=True):
            folder = f"{'-'.join(cell)}-{seed}".lower()
            labels = {**dict(zip(axes, cell, strict=True)), "seed": f"seed {seed}"}
            entries.append({"folder": folder, "variant": ", ".join(cell), "labels": labels, "run_id": folder})
            write_run(place / folder, seed=seed, test_score=score, **options)
    (place / "study.json").write_text(json.dumps({"study": "s", "rank": None, "runs": entries}))
    register(place, asked, [{"labels": one["labels"], "run_id": one["run_id"]} for one in entries], [])
    return place
