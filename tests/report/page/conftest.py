"""One small study of real runs, with and without a gate, for all tests of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.lab.plans.registration import register_plan
from fedreuse.report.gather import gather
from fedreuse.report.page.shown import Shown
from fedreuse.studies.running import run_study
from fedreuse.studies.study import expand
from tests.tiny import plain

PLAN = {
    "contrasts": [
        {"of": "reuse", "against": "dense <b>", "test": "non_inferiority", "margin": 0.2, "better": "higher"},
        {"of": "reuse", "against": "dense <b>", "test": "equivalence", "margin": 0.3},
    ],
    "targets": [0.3],
}
STUDY = {
    "base": {**plain(rounds={"evaluate_every": 1, "count": 5}), "method": {"name": "fedavg"}},
    "axes": {
        "method": {"dense <b>": {}, "reuse": {"method": {"name": "dg_fedreuse"}, "uplink": {"update": "top_k"}}},
        "seed": [11, 12, 13, 14, 15],
    },
}


def run_all(place: Path, study: dict[str, object]) -> Path:
    """Run a study into a folder."""
    expanded = expand(study, place.name)
    register_plan(expanded, place)
    for outcome in run_study(expanded, place, jobs=1):
        assert not outcome.error
    return place


@pytest.fixture(scope="session")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a plan: two variants, one with a gate, five seeds, five rounds; do not change it."""
    return run_all(tmp_path_factory.mktemp("page") / "planned", {**STUDY, "plan": PLAN})


@pytest.fixture(scope="session")
def shown(planned: Path) -> Shown:
    """Its runs."""
    return Shown((planned,), tuple(gather([planned])))
