"""Attack x bounds x method: test accuracy and back-door success of every cell of configs/robust/members.yaml.

python -m benchmarks.members --out docs/bench/members.json [METHOD...]

A row per cell: `score` is the mean test accuracy over the seeds (a run that ends with an error counts as 0, and is in
`ended`), `backdoor` the mean share of stamped test images that get the attacker's class; both in per cent. Without
bounds, where most attacks destroy the model, the first two seeds are run. A study with development seeds, whose test
split stays closed, has the best validation accuracy as its score.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from fedreuse.core.errors import RunError
from fedreuse.runs.launch import run
from fedreuse.studies.study import load_study

__all__ = ["cells", "main", "played"]

STUDY = Path(__file__).parents[1] / "configs" / "robust" / "members.yaml"
PLAIN_SEEDS = 2
Cell = tuple[str, str, str]


def played(plain: dict[str, Any]) -> tuple[float, float | None, bool]:
    """Run one configuration; return test accuracy, back-door success, and whether the run ended early."""
    with TemporaryDirectory() as folder:
        try:
            summary = run(plain, Path(folder) / "run").summary
        except RunError:
            return 0.0, None, True
    score = summary["validation_score" if summary["test_score"] is None else "test_score"]
    return 100 * float(score), summary.get("attack_success"), False


def cells(results: list[tuple[Cell, tuple[float, float | None, bool]]]) -> list[dict[str, Any]]:
    """Return one row per method, bounds and attack, with means over the seeds."""
    rows = []
    for cell in dict.fromkeys(cell for cell, _ in results):
        outcomes = [outcome for key, outcome in results if key == cell]
        goals = [goal for _, goal, _ in outcomes if goal is not None]
        method, bounds, attack = cell
        row: dict[str, Any] = {"method": method, "bounds": bounds, "attack": attack, "seeds": len(outcomes)}
        row["score"] = round(fmean(score for score, _, _ in outcomes), 1)
        row["ended"] = sum(ended for _, _, ended in outcomes)
        if goals:
            row["backdoor"] = round(100 * fmean(goals), 1)
        rows.append(row)
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run the cells of some methods, print them, and store them beside those of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", help="labels of the axis method; all by default")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--study", type=Path, default=STUDY)
    given = parser.parse_args(arguments)
    runs = load_study(given.study).runs
    plain = list(dict.fromkeys(one.config.seed for one in runs))[:PLAIN_SEEDS]
    chosen = [
        one
        for one in runs
        if (not given.methods or one.labels["method"] in given.methods)
        and (one.labels["bounds"] != "none" or one.config.seed in plain)
    ]
    keys: list[Cell] = [(one.labels["method"], one.labels["bounds"], one.labels["attack"]) for one in chosen]
    rows = cells([(key, played(one.config.to_plain())) for key, one in zip(keys, chosen, strict=True)])
    for row in rows:
        print(row)  # noqa: T201 - the table
    methods = {row["method"] for row in rows}
    before = json.loads(given.out.read_text())["cells"] if given.out.exists() else []
    kept = [row for row in before if row["method"] not in methods]
    given.out.write_text(json.dumps({"study": given.study.name, "cells": [*kept, *rows]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
