"""What tests of runs share: a federation so small that a whole run takes a fraction of a second, and what it left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedreuse.config.run_config import RunConfig, load
from fedreuse.store.directory import RunDirectory

TINY: dict[str, Any] = {
    "task": {"name": "synthetic", "examples": 160, "test_examples": 40, "classes": 4, "shape": [1, 8, 8], "clients": 6},
    "network": {"name": "cnn", "width": 2, "hidden": 8},
    "local": {"epochs": 1, "batch": 16},
    "method": {"name": "fedavg"},
    "rounds": {"count": 4, "cohort": 3, "evaluate_every": 2},
    "executor": {"name": "serial"},
    "seed": 5,
}


def plain(**parts: Any) -> dict[str, Any]:
    """The tiny configuration; a mapping is merged with what stands there unless it brings another name."""
    merged = dict(TINY)
    for key, value in parts.items():
        old = merged.get(key)
        is_same_part = isinstance(value, Mapping) and isinstance(old, Mapping) and "name" not in value
        merged[key] = {**old, **value} if is_same_part else value
    return merged


def tiny(*overrides: str, **parts: Any) -> RunConfig:
    """The same as an object."""
    return load(plain(**parts), overrides)


def as_first_format(place: Path) -> None:
    """Make a run directory one from before there were checksums."""
    (place / "manifest.json").unlink(missing_ok=True)
    facts = json.loads((place / "provenance.json").read_text())
    kept = {key: fact for key, fact in facts.items() if key not in ("format", "check")}
    (place / "provenance.json").write_text(json.dumps(kept))


def results(directory: RunDirectory | str | Path) -> dict[str, Any]:
    """Everything a run leaves that must be equal in equal runs: all but the seconds."""
    found = directory if isinstance(directory, RunDirectory) else RunDirectory.open(directory)
    ledger = [asdict(row) for row in found.ledger()]
    for row in ledger:
        del row["work"]["seconds"]
    metrics = found.metrics()
    for row in metrics:
        del row["seconds"]
    summary = {
        key: value for key, value in found.summary.items() if key not in ("seconds", "work", "memory_bytes", "energy")
    }
    return {
        "ledger": ledger,
        "events": found.events(),
        "metrics": metrics,
        "summary": summary,
        "model": {name: array.tobytes() for name, array in found.model().items()},
        "digests": found.provenance["digests"],
    }
