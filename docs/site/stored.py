"""Stored results behind the documents: studies in results/, measurements of scripts and single scores in docs/bench."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from fedreuse.accounting.saving import Saving
from fedreuse.report.gather import admitted
from fedreuse.report.results import Result, partial_note, read_runs
from fedreuse.store.archive import SUFFIX
from fedreuse.store.openings import openings_behind

__all__ = ["BENCH", "STORED", "evaluations", "is_scores_alone", "note", "place_of", "runs_of", "scores_alone"]

STORED = Path(__file__).parents[2] / "results"
BENCH = Path(__file__).parents[1] / "bench"


def place_of(name: str) -> Path:
    """Return the archive of a stored study, or its folder if it is not packed."""
    packed = STORED / f"{name}{SUFFIX}"
    return packed if packed.exists() else STORED / name


def runs_of(name: str) -> list[Result]:
    """Return the runs of a stored study.

    Raises:
        ValueError: A run fails a check, so that nothing of the study may be published.

    """
    return scores_alone(name) if is_scores_alone(name) else _read(place_of(name))


@cache
def _read(place: Path) -> list[Result]:
    results, left_out = admitted(read_runs(place))
    if left_out:
        raise ValueError(f"results/{place.name}: {'; '.join(left_out)}")
    return results


def is_scores_alone(name: str) -> bool:
    """Return whether only the scores of a study were kept, from before there were exports."""
    file = BENCH / f"{name}.json"
    return file.exists() and "study" in json.loads(file.read_text(encoding="utf-8"))


def scores_alone(name: str) -> list[Result]:
    """Return the runs of a study of which only scores were kept."""
    content = json.loads((BENCH / f"{name}.json").read_text(encoding="utf-8"))
    same = {key: values[0] for key, values in content["study"].items()}
    return [_result({**same, **run}) for run in content["runs"]]


def _result(run: Mapping[str, Any]) -> Result:
    facts = {"directory": Path(), "run_id": "", "variant": "", "is_complete": True, "planned_rounds": run["rounds"]}
    known = {key: part for key, part in run.items() if key in {one.name for one in fields(Result)}}
    saving = Saving(run.get("up", 0), run.get("down", 0), *[None] * 6, 0, 0)
    return Result(**{**facts, **known}, savings={"messages": saving} if "up" in run else {})


def evaluations(names: Iterable[str]) -> str:
    """Return a sentence that counts evaluations of test sets behind the scores of studies; empty if there are none."""
    tested = [one.directory for name in names for one in runs_of(name) if one.test_score is not None and one.run_id]
    by_split: dict[tuple[str, str], list[str]] = {}
    for opening in openings_behind(tested):
        by_split.setdefault((opening.dataset, opening.digest), []).append(opening.selection)
    parts = [
        f"{dataset} {len(seen)} times ({len(set(seen))} configuration{'s' if len(set(seen)) > 1 else ''})"
        for (dataset, _), seen in by_split.items()
    ]
    return f"Test sets evaluated: {'; '.join(parts)}." if parts else ""


def note(name: str) -> str:
    """Return what a reader must know of a study: missing runs, or scores without runs; empty if nothing."""
    if is_scores_alone(name):
        return f"Only scores are stored (`docs/bench/{name}.json`), without runs that could be audited."
    return partial_note(place_of(name))
