"""`fedreuse run`: a result, a resume, and every mistake a user can make, with its place, its value and a way out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.core.allowed import allow
from fedreuse.store.directory import RunDirectory
from tests.cli.conftest import Invoke

FEDREUSE = [sys.executable, "-c", "from fedreuse.cli import main; main()"]


@pytest.mark.slow
def test_a_run_ends_in_a_summary_and_a_directory(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    shown = invoke("run", tiny, "--out", tmp_path / "run")
    assert shown.exit_code == 0, shown.stderr
    assert (tmp_path / "run" / "COMPLETE").exists()
    for text in (
        "round 1/2",
        "round 2/2",
        "test accuracy",
        "of dense FedAvg",
        "both ways",
    ):
        assert text in shown.stdout
    assert f"run directory: {tmp_path / 'run'}" in shown.stdout
    assert f"fedreuse show {tmp_path / 'run'}" in shown.stdout


@pytest.mark.slow
def test_the_default_directory_bears_the_runs_name(invoke: Invoke, tiny: Path, in_folder: Path) -> None:
    from fedreuse import load

    shown = invoke("run", tiny, "rounds.count=1", "seed=7", "--json")
    expected = Path("runs") / load(tiny, ["rounds.count=1", "seed=7"]).label
    assert json.loads(shown.stdout)["directory"] == str(expected)
    assert (in_folder / expected / "COMPLETE").exists()


@pytest.mark.slow
def test_json_is_pure_and_complete(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    shown = invoke("run", tiny, "--out", tmp_path / "run", "--json")
    told = json.loads(shown.stdout)
    assert told["is_complete"]
    assert told["rounds"] == 2
    assert 0 <= told["test_score"] <= 1
    # Top-K 0.2 keeps at least every fifth coordinate and marks it: below 1 - 0.2
    assert 0.7 < told["savings"]["update_fields"]["up"] < 0.8
    assert told["savings"]["update_fields"]["down"] is None
    assert "round 1/2" in shown.stderr


@pytest.mark.slow
def test_resume_goes_on_and_gives_the_same_model(invoke: Invoke, tiny: Path, incomplete: Path, complete: Path) -> None:
    refused = invoke("run", tiny, "--out", incomplete)
    assert refused.exit_code == 2
    assert "holds an unfinished run; continue it with --resume" in refused.stderr
    assert invoke("run", tiny, "--out", incomplete, "--resume").exit_code == 0
    assert (incomplete / "model.safetensors").read_bytes() == (complete / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "place", "way_out"),
    [
        ("rounds.cuont=3", "rounds.cuont", "did you mean 'count'?"),
        ("mehtod=fedavg", "mehtod", "did you mean 'method'?"),
        ("method=fedavgg", "method", "did you mean 'fedavg'?"),
        ("rounds.count=many", "rounds.count", "valid integer"),
        ("rounds.count=true", "rounds.count", "int expected"),
        ("task=[1]", "task", "a mapping expected"),
        ("uplink.update.ratio=0", "uplink.update", "ratio must be in (0, 1], got 0"),
        ("uplink.update.ratio=1.5", "uplink.update", "ratio must be in (0, 1], got 1.5"),
        ("rounds.cohort=7", "rounds.cohort is 7, but task.clients is 6", "set rounds.cohort to at most 6"),
        ("method={name: dg_fedreuse, gate: {quota: 1.5}}", "method.gate", "quota must be in [0, 1], got 1.5"),
        ("rounds.count", "'rounds.count' is not an override", "write key=value"),
        ("network=absent_module:Net", "there is no module 'absent_module'", "correct the name"),
    ],
)
def test_a_mistake_names_the_place_the_value_and_the_way_out(
    invoke: Invoke, tiny: Path, tmp_path: Path, change: str, place: str, way_out: str
) -> None:
    shown = invoke("run", tiny, change, "--out", tmp_path / "run")
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert place in shown.stderr
    assert way_out in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not (tmp_path / "run").exists(), "nothing starts before the configuration is understood"


def test_a_missing_file_names_its_neighbour(invoke: Invoke, tiny: Path) -> None:
    shown = invoke("run", tiny.with_name("tiyn.yaml"))
    assert shown.exit_code == 2
    assert "tiyn.yaml: no such file; did you mean 'tiny.yaml'?" in shown.stderr


def test_a_file_that_is_not_yaml(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("task: {name: digits\nrounds: [")
    shown = invoke("run", tmp_path / "bad.yaml")
    assert shown.exit_code == 2
    assert "not valid YAML" in shown.stderr


def test_a_study_is_pointed_to_compare(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("base: {}\naxes: {seed: [1]}\n")
    assert "fedreuse compare" in invoke("run", tmp_path / "study.yaml").stderr


@pytest.mark.slow
def test_absent_data_says_how_to_get_it_and_leaves_nothing_in_the_way(
    invoke: Invoke, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDREUSE_DATA", str(tmp_path / "data"))
    for _ in range(2):  # the second time too: nothing has begun that would have to be resumed
        shown = invoke("run", tiny, "task.name=mnist", "--out", tmp_path / "run")
        assert shown.exit_code == 2
        assert "fedreuse data fetch mnist" in shown.stderr


@pytest.mark.slow
def test_a_directory_in_use_is_left_alone(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    script = (
        "import sys\nfrom fedreuse.store.directory import RunDirectory\n"
        "directory = RunDirectory(sys.argv[1])\ndirectory.lock()\nprint('locked', flush=True)\nsys.stdin.read()\n"
    )
    place = tmp_path / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        shown = invoke("run", tiny, "--out", place)
    finally:
        holder.communicate()
    assert shown.exit_code == 2
    assert f"{place} is in use by process {holder.pid}" in shown.stderr
    assert "choose another --out" in shown.stderr


@pytest.mark.slow
def test_a_complete_directory_is_not_run_again(invoke: Invoke, tiny: Path, complete: Path) -> None:
    before = (complete / "summary.json").read_bytes()
    shown = invoke("run", tiny, "--out", complete)
    assert shown.exit_code == 2
    assert "holds a complete run" in shown.stderr
    assert f"fedreuse show {complete}" in shown.stderr
    assert invoke("run", tiny, "--out", complete, "--resume").exit_code == 0
    assert (complete / "summary.json").read_bytes() == before


@pytest.mark.slow
def test_another_configuration_does_not_go_on_here(
    invoke: Invoke, tiny: Path, incomplete: Path, complete: Path
) -> None:
    for place in (incomplete, complete):
        shown = invoke("run", tiny, "seed=9", "--out", place, "--resume")
        assert shown.exit_code == 2
        assert "belongs to another configuration: seed is 9 here and 101 there" in shown.stderr


def test_a_foreign_checkpoint_is_refused(invoke: Invoke, tiny: Path, incomplete: Path) -> None:
    for leftover in incomplete.glob("checkpoint.sqlite*"):
        leftover.unlink()
    (incomplete / "checkpoint.sqlite").write_text("my shopping list\n" * 100)
    shown = invoke("run", tiny, "--out", incomplete, "--resume")
    assert shown.exit_code == 2
    assert "checkpoint.sqlite is not a checkpoint of fedreuse" in shown.stderr
    assert (incomplete / "checkpoint.sqlite").read_text().startswith("my shopping list"), "it is not ours to touch"


@pytest.mark.slow
def test_the_journal_of_another_network_is_refused(
    invoke: Invoke, tiny: Path, incomplete: Path, tmp_path: Path
) -> None:
    from fedreuse import load, run
    from tests.cli.conftest import Crash, CrashAfterOne

    with pytest.raises(Crash):
        run(load(tiny, ["network.hidden=[9]"]), tmp_path / "foreign", listeners=[CrashAfterOne()])
    for leftover in incomplete.glob("checkpoint.sqlite*"):
        leftover.unlink()
    for file in (tmp_path / "foreign").glob("checkpoint.sqlite*"):
        (incomplete / file.name).write_bytes(file.read_bytes())
    shown = invoke("run", tiny, "--out", incomplete, "--resume")
    assert shown.exit_code == 2, shown.stderr
    assert str(incomplete) in shown.stderr
    assert "internal error" not in shown.stderr


@pytest.mark.slow
def test_a_real_process_runs_from_start_to_end(tiny: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", "from fedreuse.cli import main; main()", "run", str(tiny), "--json"]
    done = subprocess.run([*words, "--out", str(tmp_path / "run")], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["is_complete"]


def test_resume_where_nothing_began_is_refused_with_the_nearest_run(
    invoke: Invoke, tiny: Path, incomplete: Path
) -> None:
    mistyped = incomplete.with_name("incomplette")
    shown = invoke("run", tiny, "--out", mistyped, "--resume")
    assert shown.exit_code == 2
    assert f"{mistyped} holds no run to resume; did you mean '{incomplete}'?" in shown.stderr
    assert not mistyped.exists()


@pytest.mark.slow
def test_one_round_and_paths_that_can_be_copied(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    shown = invoke("run", tiny, "rounds.count=1", "--out", tmp_path / "a b")
    assert ": 1 round of 3 clients into " in shown.stdout
    assert f"fedreuse show '{tmp_path / 'a b'}'" in shown.stdout


def test_a_module_that_is_allowed_and_absent(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    shown = invoke("run", tiny, "network=absent_module:Net", "--allow", "absent_module", "--out", tmp_path / "run")
    assert shown.exit_code == 2
    assert "network.name: cannot import 'absent_module'" in shown.stderr
    assert "run from the folder" in shown.stderr


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "{name: pool, workers: 1}"])
def test_an_error_in_their_network_names_their_file_and_line(
    invoke: Invoke, tiny: Path, in_folder: Path, executor: str
) -> None:
    (in_folder / f"their_{len(executor)}.py").write_text(
        "from torch import nn\n\nclass Net(nn.Linear):\n    def __init__(self):\n        super().__init__(64, 10)\n\n"
        "    def forward(self, inputs):\n        if self.training:\n            self.absent\n"
        "        return super().forward(inputs.flatten(1))\n"
    )
    theirs = f"their_{len(executor)}"
    words = ["run", tiny, f"network={theirs}:Net", f"executor={executor}", "--out", in_folder / "run"]
    shown = invoke(*words, "--allow", theirs)
    assert shown.exit_code == 2
    assert f"their_{len(executor)}.py, line 9, in forward (`self.absent`): AttributeError" in shown.stderr
    assert "internal error" not in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.slow
def test_a_pipe_that_is_closed_ends_the_run_quietly_and_it_can_go_on(tiny: Path, tmp_path: Path) -> None:
    words = [*FEDREUSE, "run", str(tiny), "rounds.count=400", "--out", str(tmp_path / "run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(120) == 1
    assert RunDirectory.open(tmp_path / "run").metrics()


STOPS = """
from fedreuse import Listener, Stop

class AfterOne(Listener):
    def round_done(self, event):
        return Stop("one is enough")
"""


@pytest.mark.slow
def test_a_run_that_a_listener_stopped_says_how_to_go_on(
    invoke: Invoke, tiny: Path, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (in_folder / "stops_early.py").write_text(STOPS)
    monkeypatch.syspath_prepend(in_folder)
    allow(["stops_early"])
    shown = invoke("run", tiny, "listeners=[{name: stops_early:AfterOne}]", "--out", "run")
    assert shown.exit_code == 0, shown.stderr
    assert "stopped after round 1: one is enough\ncontinue with\n  fedreuse run " in shown.stdout
    done = json.loads(invoke("run", tiny, "--out", "run", "--resume", "--json").stdout)
    assert (done["state"], done["rounds"]) == ("complete", 2)


def test_a_refused_configuration_is_told_before_anything_else(invoke: Invoke, tiny: Path, in_folder: Path) -> None:
    shown = invoke("run", tiny, "task.limit=99999", "--out", "run")
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert not (in_folder / "run").exists()


@pytest.mark.slow
def test_a_configuration_of_a_stranger_runs_no_shell(invoke: Invoke, tiny: Path, in_folder: Path) -> None:
    (in_folder / "elsewhere").mkdir()
    stranger = in_folder / "elsewhere" / "theirs.yaml"
    stranger.write_text(tiny.read_text())
    (in_folder / "mine_here.py").write_text(STOPS)
    shown = invoke("run", stranger, 'network={name: "os:system", command: "touch forbidden"}', "--out", "run")
    assert shown.exit_code == 2
    assert "importing 'os' is refused" in shown.stderr
    listens = "listeners=[{name: mine_here:AfterOne}]"
    assert "--allow mine_here" in invoke("run", stranger, listens, "--out", "run").stderr
    assert not (in_folder / "forbidden").exists()
    assert not (in_folder / "run").exists()
    shown = invoke("run", stranger, listens, "--out", "run", "--allow", "mine_here")
    assert shown.exit_code == 0, shown.stderr
    assert "--allow mine_here" in shown.stdout  # and so does the command that goes on
