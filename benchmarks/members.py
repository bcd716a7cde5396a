"""Attack x bounds x method: test accuracy and back-door success of every cell of configs/robust/members.yaml.

python -m benchmarks.members --out docs/bench/members.json [METHOD...]
python -m benchmarks.members --study configs/robust/members_clean.yaml --out docs/bench/members-clean.json --also \
    "norms alone" "coordinates alone" "examples alone"

A row per cell: `score` is the mean test accuracy over the seeds (a run that ends with an error counts as 0, and is in
`ended`), `backdoor` the mean share of stamped test images that get the attacker's class; both in per cent. Without
bounds, where most attacks destroy the model, attacks are run with the first two seeds. A study with development seeds,
whose test split stays closed, has the best validation accuracy as its score. With `--also`, bounded cells are also run
with other constants of `bounds`, such as one part of it alone, which shows what that part costs.
"""

from __future__ import annotations

import argparse
import json
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import RunError
from fedreuse.robustness import bounds
from fedreuse.runs.launch import run
from fedreuse.studies.study import load_study

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cells", "main", "played", "varied"]

STUDY = Path(__file__).parents[1] / "configs" / "robust" / "members.yaml"
PLAIN_SEEDS = 2
Cell = tuple[str, str, str]
OFF = 10**9
"""A multiple of a median that nothing reaches."""
VARIANTS = {
    "norms alone": {"SPREAD": OFF, "COUNTED": OFF},
    "coordinates alone": {"LONGEST": OFF, "COUNTED": OFF},
    "examples alone": {"LONGEST": OFF, "SPREAD": OFF},
    "earlier replies of all": {"RECENT": OFF},
}
"""Constants of `bounds` by name: one part of it alone, or comparisons with earlier replies of any number of clients."""


def played(plain: dict[str, Any]) -> tuple[float, float | None, bool]:
    """Run one configuration; return test accuracy, back-door success, and whether the run ended early."""
    with TemporaryDirectory() as folder:
        try:
            summary = run(plain, Path(folder) / "run").summary
        except RunError:
            return 0.0, None, True
    score = summary["validation_score" if summary["test_score"] is None else "test_score"]
    return 100 * float(score), summary.get("attack_success"), False


@contextmanager
def varied(name: str) -> Iterator[None]:
    """Set the constants of a variant for a while; those of `bounds` for another name."""
    changed = VARIANTS.get(name, {})
    before = {constant: getattr(bounds, constant) for constant in changed}
    try:
        for constant, value in changed.items():
            setattr(bounds, constant, value)
        yield
    finally:
        for constant, value in before.items():
            setattr(bounds, constant, value)


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
    parser.add_argument("--also", nargs="*", default=[], choices=VARIANTS, metavar="VARIANT")
    given = parser.parse_args(arguments)
    runs = load_study(given.study).runs
    plain = list(dict.fromkeys(one.config.seed for one in runs))[:PLAIN_SEEDS]
    chosen = [
        one
        for one in runs
        if (not given.methods or one.labels["method"] in given.methods)
        and (one.labels["bounds"] != "none" or one.config.attack is None or one.config.seed in plain)
    ]
    results = []
    for one in chosen:
        labels = one.labels
        for name in (labels["bounds"], *(given.also if labels["bounds"] == "median" else ())):
            with varied(name):
                results.append(((labels["method"], name, labels["attack"]), played(one.config.to_plain())))
    rows = cells(results)
    for row in rows:
        print(row)  # noqa: T201 - the table
    methods = {row["method"] for row in rows}
    before = json.loads(given.out.read_text())["cells"] if given.out.exists() else []
    kept = [row for row in before if row["method"] not in methods]
    given.out.write_text(json.dumps({"study": given.study.name, "cells": [*kept, *rows]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
