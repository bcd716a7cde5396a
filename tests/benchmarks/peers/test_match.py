"""The match with others: the same work for all, skipping whoever is absent, and the table by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers import match
from fedreuse.core.errors import RunError
from fedreuse.engine.schedule import Schedule
from fedreuse.lab.bench.interleaving import Command, ours
from fedreuse.lab.bench.workload import configure

PEER = match.Peer("here", ("no-such-package-anywhere",), "turn", {"1": {"processes": 1, "threads": 1}})


def test_the_work_is_that_of_the_run() -> None:
    config = configure("tiny", 3)
    work, prepared = match.work_of(config), config.task.prepare(config.seed)
    assert [len(work.client(client, False)[1]) for client in range(6)] == prepared.training.sizes.tolist()
    cohorts = Schedule.draw(6, 3, 3, config.rounds.availability, config.seed).cohorts
    assert work.cohorts.tolist() == [list(cohort) for cohort in cohorts]
    assert (work.training["epochs"], work.training["lr"]) == (2, 0.05)


def test_speeds_and_ratios_by_hand() -> None:
    def row(name: str, form: str, seconds: list[float]) -> dict[str, object]:
        return {"contender": name, "form": form, "seconds": seconds, "cpu_seconds": seconds, "examples": [100, 100]}

    rows = [
        row("fedreuse, pool of 2", "plain", [1.0, 1.0]),
        row("pfl-research 0.6, 2 threads", "plain", [2.0, 3.0]),
        row("fedreuse, pool of 2", "tuned", [1.0, 1.0]),
    ]
    (table,) = match.tables(rows)
    assert table.rows == (
        ("fedreuse, pool of 2", "100", "-", "100", "-"),
        ("pfl-research 0.6, 2 threads", "40", "2.50 (2.00-3.00)", "-", "-"),
    )


def test_others_get_this_package_alone_and_stay_offline(tmp_path: Path) -> None:
    commands = match._commands({"x": PEER}, tmp_path, tmp_path / "scratch", is_tuned=True)
    command = commands["x, 1"]
    assert command.words[0] == str(tmp_path / "here" / "bin" / "python")
    assert command.environment["PYTHONPATH"] == str(tmp_path / "scratch" / "package")
    assert command.environment["FLWR_TELEMETRY_ENABLED"] == "0"
    assert command.environment["OMP_NUM_THREADS"] == "1"


def test_nobody_is_installed_in_an_empty_folder(tmp_path: Path) -> None:
    assert not any(match.is_installed(peer, tmp_path) for peer in match.PEERS.values())


@pytest.mark.slow
def test_a_failed_installation_leaves_no_half_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(RunError, match="pip could not install no-such-package-anywhere"):
        match.install(PEER, tmp_path)
    assert not match.is_installed(PEER, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["turn", "peer_work"])
def test_what_runs_elsewhere_imports_its_neighbours_alone(module: str) -> None:
    code = (
        f"import sys, fedreuse.lab.bench.{module}; "
        "print(*sorted(name for name in sys.modules if name.startswith('fedreuse')))"
    )
    command = Command([sys.executable, "-c", code], ours("x").environment)
    done = subprocess.run(command.words, env=dict(command.environment), capture_output=True, text=True, check=True)
    light = {
        "fedreuse",
        "fedreuse.core",
        "fedreuse.core.errors",
        "fedreuse.core.extras",
        "fedreuse.core.untrusted",
        "fedreuse.lab",
    }
    assert set(done.stdout.split()) == {*light, "fedreuse.lab.bench", f"fedreuse.lab.bench.{module}"}
