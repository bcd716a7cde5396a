"""`fedreuse lab bench`: a results file with provenance, a table for people, JSON for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.peers import match
from fedreuse.lab.bench import engine, interleaving, scale, step
from fedreuse.lab.bench.results import read
from tests.cli.conftest import Invoke

ROWS = [
    {"contender": "bare loop, 1 process", "seconds": [9.0], "cpu_seconds": [9.0]},
    {
        "contender": "engine, serial",
        "seconds": [10.0],
        "cpu_seconds": [10.0],
        "examples": [100],
        "client_seconds": [9.0],
    },
]


@pytest.fixture(autouse=True)
def _no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run", lambda *words, **options: ROWS)
    monkeypatch.setattr(interleaving, "keep_cores", lambda count: count)


def test_results_go_to_a_file_with_provenance(invoke: Invoke, in_folder: Path) -> None:
    shown = invoke("lab", "bench", "engine", "--workload", "resnet18", "--rounds", "1")
    assert shown.exit_code == 0, shown.output
    assert "share of the serial round outside local SGD" in " ".join(shown.stdout.split())
    results = read(in_folder / "bench" / "engine-resnet18.json")
    assert results.rows == ROWS
    assert results.settings["rounds"] == 1
    assert results.provenance["python"]


def test_the_step_has_a_command(invoke: Invoke, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"contender": "plain torch", "batch": 32, "seconds": [0.1], "cpu_seconds": [0.1]}]
    asked: list[object] = []
    monkeypatch.setattr(step, "run", lambda *words, **options: asked.extend(words) or rows)
    shown = invoke("lab", "bench", "step", "--batch", "32", "--repeats", "2")
    assert shown.exit_code == 0, shown.output
    assert asked == [[32], 2]
    assert read(in_folder / "bench" / "step.json").rows == rows


@pytest.mark.slow
def test_codecs_and_their_report(invoke: Invoke, in_folder: Path) -> None:
    shown = invoke("lab", "bench", "codecs", "--workload", "tiny", "--repeats", "1")
    assert shown.exit_code == 0, shown.output
    document = in_folder / "page.md"
    document.write_text("before\n<!-- bench codecs -->\nold\n<!-- end of bench -->\nafter\n")
    assert "codecs filled in" in invoke("lab", "bench", "report", document).stdout
    told = invoke("lab", "bench", "report", document, "--json").stdout
    assert json.loads(told) == {"document": str(document), "filled": ["codecs"]}
    text = document.read_text()
    assert "| top_k | " in text
    assert "\nold\n" not in text
    assert text.endswith("after\n")


def test_peers_that_are_not_installed_are_skipped_with_a_word(
    invoke: Invoke, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = {"fedreuse, pool of 2": [{"seconds": 1.0, "cpu_seconds": 2.0, "examples": 100}]}
    monkeypatch.setattr(match, "take_turns", lambda *words: played)
    shown = invoke("lab", "bench", "peers", "--workload", "tiny", "--environments", in_folder, "--rounds", 1)
    assert shown.exit_code == 0, shown.output
    assert "Flower 1.41 simulation is skipped" in shown.stderr
    assert "--install" in shown.stderr
    assert len(read(in_folder / "bench" / "peers.json").rows) == 2


def test_json_is_json_alone(invoke: Invoke, in_folder: Path) -> None:
    told = json.loads(invoke("lab", "bench", "engine", "--json", "--out", "here.json").stdout)
    assert told["rows"] == ROWS
    assert (in_folder / "here.json").exists()


def test_an_unknown_workload_is_the_users_mistake(invoke: Invoke) -> None:
    refused = invoke("lab", "bench", "engine", "--workload", "huge")
    assert refused.exit_code == 2
    assert "reference" in refused.stderr


@pytest.mark.slow
def test_growth_and_memory_have_commands(invoke: Invoke, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {
            "varied": varied, "method": "fed_ef", "population": 100, "cohort": 10, "seconds": [1.0],
            "cpu_seconds": [1.0], "start_seconds": 1.0, "peak_bytes": 10**8, "fresh": [10], "reused": [0],
        }
        for varied in ("population", "cohort")
    ]  # fmt: skip
    asked: list[object] = []
    monkeypatch.setattr(scale, "run", lambda *sizes, **options: asked.extend(sizes) or rows)
    shown = invoke(
        "lab", "bench", "scale", "--population", "100", "--rounds", "2", "--figure", in_folder / "growth.png"
    )
    assert shown.exit_code == 0, shown.output
    assert asked == [[100], (10, 100, 1000), 2]
    assert (in_folder / "growth.png").exists()
    assert read(in_folder / "bench" / "scale.json").rows == rows
    shown = invoke("lab", "bench", "memory", "--clients", "12", "--network", "mlp")
    assert shown.exit_code == 0, shown.output
    assert read(in_folder / "bench" / "memory.json").rows[0]["caches"] == 12
