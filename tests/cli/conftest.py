"""Tiny runs on the digits, shared by the tests of the command line."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from fedreuse.cli import app
from fedreuse.runs.listeners import Listener, RoundDone
from tests.report.runs import write_run

TINY: dict[str, Any] = {
    "task": {"name": "digits", "clients": 6, "partition": {"name": "iid"}},
    "network": {"name": "mlp", "hidden": [8]},
    "local": {"epochs": 1, "batch": 32},
    "method": {"name": "fedavg"},
    "uplink": {"update": {"name": "top_k", "ratio": 0.2}},
    "rounds": {"count": 2, "cohort": 3, "evaluate_every": 1},
    "executor": {"name": "serial"},
}
Invoke = Callable[..., Result]


class Crash(BaseException):
    """Ends a run after its first round, as Ctrl-C would."""


class CrashAfterOne(Listener):
    """A listener that crashes the run."""

    def round_done(self, event: RoundDone) -> None:
        """One round is enough."""
        raise Crash


@pytest.fixture(autouse=True)
def usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal that started the tests does not decide how wide tables are."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def invoke() -> Invoke:
    """The real command line, in this process."""
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration that runs in a blink."""
    file = tmp_path_factory.mktemp("configs") / "tiny.yaml"
    file.write_text(yaml.safe_dump(TINY))
    return file


@pytest.fixture(scope="session")
def complete(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that came to its end; do not change it."""
    from fedreuse import load, run

    return run(load(tiny), tmp_path_factory.mktemp("complete") / "run").path


@pytest.fixture(scope="session")
def stopped(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that crashed after its first round; do not change it."""
    from fedreuse import load, run

    place = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(Crash):
        run(load(tiny), place, listeners=[CrashAfterOne()])
    return place


@pytest.fixture
def incomplete(stopped: Path, tmp_path: Path) -> Path:
    """A copy of the crashed run, to go on with."""
    return Path(shutil.copytree(stopped, tmp_path / "incomplete"))


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    """A study with a run that holds together, one that nobody can read, and one that was never begun."""
    place = tmp_path / "spoilt"
    for number, name in enumerate(("good", "ruined")):
        write_run(place / name, seed=number)
    (place / "ruined" / "config.yaml").write_text("[")
    entries = [{"folder": name, "variant": name, "labels": {}} for name in ("good", "ruined", "absent")]
    (place / "study.json").write_text(json.dumps({"study": "spoilt", "rank": None, "runs": entries}))
    return place


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def heed_ctrl_c() -> None:
    """A job in the background ignores Ctrl-C, and so would its children: undo that for the child."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
