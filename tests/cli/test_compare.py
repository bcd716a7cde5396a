"""`fedreuse compare`: all configurations are read first; complete runs stay, others are resumed; one table."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from fedreuse.core.errors import RunError
from fedreuse.studies.running import run_study
from fedreuse.studies.study import load_study
from tests.cli.conftest import TINY, Invoke, heed_ctrl_c
from tests.tiny import results, seal_again

AXES = {
    "method": {"dense": {"method": "fedavg", "uplink": None}, "Top-K": {"uplink.update.ratio": 0.1}},
    "seed": [1, 2],
}


def write_study(folder: Path) -> Path:
    (folder / "base.yaml").write_text(yaml.safe_dump(TINY))
    file = folder / "pair.yaml"
    file.write_text(yaml.safe_dump({"base": "base.yaml", "axes": AXES}, sort_keys=False))
    return file


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of thirty rounds that nobody interrupted; do not change it."""
    folder = tmp_path_factory.mktemp("whole")
    for _ in run_study(load_study(write_study(folder), ["rounds.count=30"]), folder / "runs", jobs=1):
        pass
    return folder / "runs"


@pytest.mark.slow
def test_runs_that_are_there_already_are_compared_and_nothing_runs(
    invoke: Invoke, complete: Path, stopped: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(complete, tmp_path / "other"))
    config = yaml.safe_load((other / "config.yaml").read_text())
    config["uplink"]["update"]["codec"]["ratio"] = 0.1
    (other / "config.yaml").write_text(yaml.safe_dump(config))
    seal_again(other)
    shown = invoke("compare", complete, other, stopped, "--full", "--out", tmp_path / "figures")
    assert shown.exit_code == 0, shown.stderr
    assert "Saving against dense FedAvg" in shown.stdout
    assert "fedavg, top_k 0.1" in shown.stdout
    assert f"figure: {tmp_path / 'figures' / 'comparison.png'}" in shown.stdout
    told = json.loads(invoke("compare", complete, other, "--json").stdout)
    assert [variant["variant"] for variant in told["variants"]] == ["fedavg, top_k 0.2", "fedavg, top_k 0.1"]
    assert (told["study"], told["figure"]) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["runs", "tried"])
def test_single_runs_in_one_folder_count_the_openings_of_all(
    invoke: Invoke, tiny: Path, in_folder: Path, folder: str
) -> None:
    place = in_folder / folder
    for name, changes in (("x1", "seed=1"), ("x2", "local.epochs=2")):
        shown = invoke("run", tiny, changes, "rounds.count=1", "--out", place / name)
        assert shown.exit_code == 0, shown.stderr
    shutil.rmtree(place / "x1")  # who forgets a run does not undo its look
    shown = invoke("compare", place / "x2")
    assert "digits 2 times (2 configurations)" in " ".join(shown.stdout.split())
    assert len(json.loads(invoke("compare", place / "x2", "--json").stdout)["test_openings"]) == 2
    assert [path.name for path in in_folder.iterdir()] == [folder]


@pytest.mark.slow
def test_variants_that_are_one_method_are_told_aloud(invoke: Invoke, study: Path, tmp_path: Path) -> None:
    link = {"uplink": {"update": {"name": "plain", "codec": {"name": "top_k", "ratio": 0.2}}}}  # spelt out: it stays
    axes = {"method": {name: {"method": name, **link} for name in ("fedavg", "fed_ef")}}
    study.write_text(yaml.safe_dump({"base": "base.yaml", "axes": axes}, sort_keys=False))
    shown = invoke("compare", study, "rounds.count=1", "--full", "--out", tmp_path / "out")
    assert shown.exit_code == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    assert "WARNING: 'fedavg' and 'fed_ef' end with bit-identical models" in words
    assert words.count("top_k 0.2") >= 2  # the link that was used is named beside the method


@pytest.mark.slow
def test_a_study_ends_in_one_table_and_a_figure(invoke: Invoke, study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = invoke("compare", study, "--full", "--out", out)
    assert shown.exit_code == 0, shown.stderr
    assert "times less, both ways" in shown.stdout
    assert shown.stdout.index("both ways") < shown.stdout.index("update_fields")  # the answer comes first
    assert f"study pair: 4 runs into {out}" in shown.stdout
    assert len(list(out.glob("*/COMPLETE"))) == 4
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert "mean ± standard deviation over 2 seeds" in shown.stdout
    for header in ("update_fields", "symmetric_fields", "all_fields", "messages"):
        assert header in shown.stdout
    assert max(map(len, shown.stdout.splitlines()[8:])) <= 100 + len(str(out))
    assert "share data, partition, cohorts and initial model" in shown.stdout

    times = {file: file.stat().st_mtime_ns for file in out.glob("*/summary.json")}
    victim = next(out.glob("top-k-s2-*"))
    for file in victim.iterdir():
        file.unlink()
    again = invoke("compare", study, "--out", out, "--json")
    assert "4 runs into" in again.stderr
    assert "3 of them complete already" in again.stderr
    told = json.loads(again.stdout)
    assert [variant["variant"] for variant in told["variants"]] == ["dense", "Top-K"]
    assert [variant["seeds"] for variant in told["variants"]] == [[1, 2], [1, 2]]
    assert told["variants"][0]["saving_up (update_fields)"] == 0
    assert told["variants"][1]["saving_up (update_fields)"] > 0.8
    kept = [file for file, time in times.items() if file.stat().st_mtime_ns == time]
    assert len(kept) == 3

    folder = invoke("show", out, "--full")
    assert folder.exit_code == 0
    assert "Top-K on digits" in folder.stdout
    assert "Saving against dense FedAvg" in folder.stdout


@pytest.mark.slow
def test_overrides_change_the_base(invoke: Invoke, study: Path, tmp_path: Path) -> None:
    shown = invoke("compare", study, "rounds.count=1", "--out", tmp_path / "out", "--json")
    assert {run["rounds"] for run in json.loads(shown.stdout)["runs"]} == {1}


def test_a_mistake_in_the_last_label_stops_everything_before_it_starts(invoke: Invoke, tmp_path: Path) -> None:
    axes = {"method": {"good": {}, "bad": {"uplink.update.ratio": 1.5}}}
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump({"base": TINY, "axes": axes}))
    shown = invoke("compare", file, "--out", tmp_path / "out")
    assert shown.exit_code == 2
    assert "study study, method 'bad': uplink.update" in shown.stderr
    assert "got 1.5" in shown.stderr
    assert not (tmp_path / "out").exists()


def test_a_configuration_is_pointed_to_run(invoke: Invoke, tiny: Path) -> None:
    shown = invoke("compare", tiny)
    assert shown.exit_code == 2
    assert "fedreuse run" in shown.stderr


@pytest.mark.slow
def test_a_run_that_fails_does_not_stop_the_others_but_the_command_fails(
    invoke: Invoke, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedreuse.studies import running as module

    real = module.run

    def sometimes(config, *args, **kwargs):  # type: ignore[no-untyped-def]
        if config.seed == 1 and "update" not in config.uplink:
            raise RunError("round 3: the model is no longer finite")
        return real(config, *args, **kwargs)

    monkeypatch.setattr(module, "run", sometimes)
    shown = invoke("compare", study, "--full", "--out", tmp_path / "out")
    assert shown.exit_code == 1
    assert "1 of 4 runs failed; the same command tries them again:\n" in shown.stderr
    assert "  dense, seed 1: round 3: the model is no longer finite" in shown.stderr
    assert "dense (1)" in shown.stdout
    assert "Top-K (2)" in shown.stdout


def test_a_folder_that_cannot_be_written(invoke: Invoke, study: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    shown = invoke("compare", study, "--out", tmp_path / "file" / "out")
    assert shown.exit_code == 2
    assert "choose another --out" in shown.stderr


@pytest.mark.slow
def test_a_ranking_fits_the_page(invoke: Invoke, study: Path, tmp_path: Path) -> None:
    shown = invoke("compare", study, "axes.seed=[1]", "accept_approximation=true", "--rank", "--full",
                   "--out", tmp_path / "out")  # fmt: skip
    assert shown.exit_code == 0, shown.stderr
    first = shown.stdout.index("Results, by validation accuracy (one seed)")
    table = [line for line in shown.stdout[first:].splitlines() if not line.startswith(("run dir", "figure"))]
    assert max(map(len, table)) <= 100
    assert any(line.split()[:7] == ["variant", *["up", "down", "both"] * 2] for line in table)
    groups = {"update_fields", "symmetric_fields", "all_fields", "messages", "lost"}
    assert any(set(line.split()) >= groups for line in table)
    assert any(line.split()[-1:] == ["links"] for line in table), (
        "beside the numbers, or below where they fill the width"
    )
    assert "dense *" in shown.stdout
    assert "* outside the method's theory" in shown.stdout
    again = invoke("show", tmp_path / "out")
    assert "by validation accuracy" in again.stdout
    told = json.loads(invoke("compare", study, "axes.seed=[1]", "accept_approximation=true", "--rank", "--json",
                             "--out", tmp_path / "out").stdout)  # fmt: skip
    assert told["rank"] == "validation"
    scores = [variant["validation_score"] for variant in told["variants"]]
    assert scores == sorted(scores, reverse=True)
    assert all(variant["is_approximate"] for variant in told["variants"])
    assert {"saving_down (messages)", "client_flops", "server_megabytes"} <= set(told["variants"][0])


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True], ids=["Ctrl-C", "killed"])
def test_stopped_in_the_middle_it_leaves_nobody_and_goes_on(
    invoke: Invoke, study: Path, whole: Path, tmp_path: Path, is_killed: bool
) -> None:
    """A real process with two runs at a time, as a terminal would start and stop it."""
    command = [sys.executable, "-m", "fedreuse", "compare", study, "rounds.count=30", "--out", tmp_path / "out"]
    process = subprocess.Popen(
        [*map(str, command), "--jobs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=heed_ctrl_c,
    )  # fmt: skip
    until(lambda: sum(is_begun(run) for run in (tmp_path / "out").glob("*-s*")) >= 2)
    if is_killed:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=600)
    if not is_killed:
        assert process.returncode == 130
        assert "the rounds so far are safe; the same command continues" in said
    until(lambda: not members(process.pid))
    assert len(list((tmp_path / "out").glob("*/COMPLETE"))) < 4
    again = invoke("compare", study, "rounds.count=30", "--out", tmp_path / "out", "--jobs", "1")
    assert again.exit_code == 0, again.stderr
    runs = list(whole.glob("*-s*"))
    assert len(runs) == 4
    for run in runs:
        assert results(tmp_path / "out" / run.name) == results(run)


def is_begun(run: Path) -> bool:
    return (run / "checkpoint.sqlite").exists() and not (run / "COMPLETE").exists()


def members(session: int) -> list[int]:
    """Processes of a session, by /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def until(is_so: Callable[[], bool], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
