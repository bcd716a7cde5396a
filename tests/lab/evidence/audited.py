"""A small study with a plan and a small search, made by code without changes; and ways to spoil them."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedreuse.core.checked import with_check
from fedreuse.lab.plans.registration import register_plan
from fedreuse.store import provenance
from fedreuse.store.directory import RunDirectory, find_runs
from fedreuse.store.manifest import MANIFEST, manifest_text
from fedreuse.studies.running import run_study
from fedreuse.studies.study import load_study
from fedreuse.studies.tuning.outcome import conclude
from fedreuse.studies.tuning.search import search as run_search
from fedreuse.studies.tuning.space import load_space
from tests.tiny import plain

SEEDS = [401, 402, 403, 404, 405]
PLAN = {
    "contrasts": [{"of": "light", "against": "full", "test": "non_inferiority", "margin": 0.9, "better": "higher"}],
    "alpha": 0.2,
}


def make_study(folder: Path) -> Path:
    """Two variants, five seeds, one round each."""
    return go_on(write_study(folder), folder / "out")


def write_study(folder: Path) -> Path:
    base = plain(rounds={"count": 1, "cohort": 2})
    axes = {"method": {"full": {}, "light": {"uplink": {"update": {"name": "top_k", "ratio": 0.5}}}}, "seed": SEEDS}
    (folder / "small.yaml").write_text(yaml.safe_dump({"base": base, "axes": axes, "plan": PLAN}))
    return folder / "small.yaml"


def go_on(file: Path, out: Path, runs: int | None = None) -> Path:
    """Run what a study lacks, or only the first of its runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "_code_state", lambda: {"commit": "0123456789abcdef", "is_modified": False})
        study = load_study(file)
        register_plan(study, out)
        assert all(not outcome.error for outcome in islice(run_study(study, out, jobs=1), runs))
    return out


def make_search(folder: Path) -> Path:
    """Two trials on one development seed, one round each."""
    base = plain(rounds={"count": 1, "cohort": 2}, task={"validation": 0.2})
    space = {"local.optimizer.lr": {"choice": [0.05, 0.1]}}
    rest = {"seeds": [1], "final_seed": 401, "sampler": "grid", "space": space, "rule": {"name": "best"}}
    (folder / "rates.yaml").write_text(yaml.safe_dump({"base": base, **rest}))
    planned = load_space(folder / "rates.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "_code_state", lambda: {"commit": "0123456789abcdef", "is_modified": False})
        conclude(planned, run_search(planned, folder / "rates"), folder / "rates")
    return folder / "rates"


def first_run(study: Path) -> RunDirectory:
    return find_runs(study)[0]


def change(path: Path, **changes: Any) -> None:
    """Entries of a JSON file, with a checksum that fits if it had one: a careful forger."""
    content = json.loads(path.read_text())
    changed = {**content, **changes}
    path.write_text(json.dumps(with_check(changed) if "check" in content else changed))


def seal_again(run: Path) -> None:
    """Make a manifest that fits the files as they are now: a very careful forger."""
    (run / MANIFEST).write_text(manifest_text(run))
