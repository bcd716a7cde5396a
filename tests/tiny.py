"""What tests of runs share: a federation so small that a whole run takes a fraction of a second, and what it left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from fedreuse.config.run_config import RunConfig, load
from fedreuse.core.checked import with_check
from fedreuse.store.directory import RunDirectory
from fedreuse.store.identity import run_id_of
from fedreuse.store.manifest import MANIFEST, digests_of, manifest_text

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


def seal_again(place: Path) -> None:
    """Make run id, digests and checksums of a complete run fit its files as they are now."""
    run_id = run_id_of(yaml.safe_load((place / "config.yaml").read_text()))
    facts = json.loads((place / "provenance.json").read_text())
    facts = {**facts, "run_id": run_id, "files": digests_of(place)}
    (place / "provenance.json").write_text(json.dumps(with_check(facts)))
    summary = {**json.loads((place / "summary.json").read_text()), "run_id": run_id}
    (place / "summary.json").write_text(json.dumps(summary))
    (place / MANIFEST).write_text(manifest_text(place))


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
