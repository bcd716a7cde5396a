"""The application: help with examples, exit codes, one line per mistake, nothing heavy before it is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

import fedreuse
from fedreuse.cli import app
from fedreuse.cli.app import PANELS
from fedreuse.core.errors import ConfigError, RunError, WireError
from fedreuse.core.formats import FORMATS
from tests.cli.conftest import Invoke, heed_ctrl_c

COMMANDS = [
    "audit",
    "authority",
    "clean",
    "compare",
    "configs",
    "demo",
    "deploy",
    "describe",
    "docs",
    "doctor",
    "export",
    "figure",
    "health",
    "init",
    "list",
    "new-method",
    "replay",
    "report",
    "run",
    "schema",
    "serve",
    "show",
    "sizes",
    "superlink",
    "supernode",
    "try",
    "tune",
    "unseal",
    "watch",
]
LAB_COMMANDS = ["anchor", "confirm", "convergence", "devices", "export-results", "gate", "wire"]
BENCH_COMMANDS = [
    "engine",
    "step",
    "peers",
    "codecs",
    "scale",
    "crowd",
    "amendments",
    "memory",
    "large",
    "needs",
    "files",
    "deploy",
    "intervals",
    "report",
]
DATA_COMMANDS = ["list", "fetch", "check", "clear", "show", "split"]
FEDREUSE = [sys.executable, "-c", "from fedreuse.cli import main; main()"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [[name] for name in COMMANDS]
    + [["data", name] for name in DATA_COMMANDS]
    + [["lab", name] for name in LAB_COMMANDS]
    + [["lab", "bench", name] for name in BENCH_COMMANDS],
)
def test_every_command_has_help_with_an_example_and_speaks_json(invoke: Invoke, words: list[str]) -> None:
    shown = invoke(*words, "--help")
    assert shown.exit_code == 0
    assert f"Example: fedreuse {' '.join(words)}" in " ".join(shown.stdout.split())
    assert "--json" in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare"], "All configurations are read before the first run starts."),
        (["data", "split"], "with one folder at each node and none at the server."),
    ],
)
def test_paragraphs_of_help_break_where_the_terminal_ends(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 400)
    assert sentence in invoke(*words, "--help").stdout


def test_every_command_has_a_short_line_in_the_list_of_commands() -> None:
    group = typer.main.get_command(app)
    commands = [
        *group.commands.items(),
        *group.commands["data"].commands.items(),
        *group.commands["lab"].commands.items(),
    ]  # type: ignore[attr-defined]
    first = {name: command.help.split("\n\n")[0] for name, command in commands}
    assert {name: text for name, text in first.items() if len(" ".join(text.split())) > 66} == {}


def test_every_command_is_in_one_panel_of_the_help(invoke: Invoke) -> None:
    listed = [name for names in PANELS.values() for name in names]
    assert sorted(listed) == sorted([*COMMANDS, "lab", "data"])
    shown = invoke("--help").stdout
    heads = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert heads == sorted(heads)
    assert "─ Commands ─" not in shown


def test_the_demo_names_all_its_methods(invoke: Invoke) -> None:
    from fedreuse.studies.study import load_study

    variants = {planned.variant for planned in load_study("demo", []).runs}
    shown = " ".join(invoke("demo", "--help").stdout.split())
    assert len(variants) == 5
    assert "DG-FedReuse and lean" in shown
    assert "All five share" in shown


def test_an_option_that_a_command_always_follows_shows_no_default(invoke: Invoke) -> None:
    assert "default: True" not in invoke("schema", "--help").stdout


def test_no_command_is_forgotten_here() -> None:
    group = typer.main.get_command(app)
    assert set(group.commands) == {*COMMANDS, "lab", "data"}  # type: ignore[attr-defined]
    assert set(group.commands["lab"].commands) == {*LAB_COMMANDS, "bench"}  # type: ignore[attr-defined]
    assert set(group.commands["data"].commands) == set(DATA_COMMANDS)  # type: ignore[attr-defined]


def test_a_lab_command_runs_without_the_word_lab_and_names_it(invoke: Invoke) -> None:
    shown = invoke("gate", "--help")
    assert shown.exit_code == 0
    assert "`fedreuse lab gate`" in shown.stderr


def test_version(invoke: Invoke) -> None:
    first, *formats = invoke("--version").stdout.splitlines()
    assert first == f"fedreuse {fedreuse.__version__}"
    assert formats == [str(one) for one in FORMATS]


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (ConfigError("a bad key"), 2, "error: a bad key\n"),
        (RunError("diverged"), 1, "error: diverged\n"),
        (WireError("not ours"), 1, "error: not ours\n"),
        (OSError(28, "No space left on device", "x"), 1, "the system refused"),
        (ZeroDivisionError("oh"), 1, "internal error (ZeroDivisionError: oh); re-run with --debug"),
    ],
)
def test_an_error_is_a_line_on_stderr_and_an_exit_code(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, word: str
) -> None:
    monkeypatch.setattr("fedreuse.core.own_code._OWN", set())  # other tests name parts of this folder as a person's own
    monkeypatch.setattr("fedreuse.config.catalog.registry_of", _raise(error))
    shown = invoke("list", "methods")
    assert (shown.exit_code, shown.stdout) == (code, "")
    assert word in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("words", [["--debug", "list", "methods"], ["list", "methods", "--debug"]])
def test_debug_shows_the_exception_wherever_it_stands(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr("fedreuse.config.catalog.registry_of", _raise(ConfigError("a bad key")))
    assert isinstance(invoke(*words).exception, ConfigError)


@pytest.mark.slow
def test_a_real_process_shows_a_traceback_only_if_asked(tmp_path: Path) -> None:
    words = [*FEDREUSE, "show", str(tmp_path / "absent")]
    quiet = subprocess.run(words, capture_output=True, text=True, check=False)
    loud = subprocess.run([*words, "--debug"], capture_output=True, text=True, check=False)
    assert quiet.returncode == 2
    assert quiet.stderr.startswith("error: ")
    assert "no such directory" in quiet.stderr
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr


@pytest.mark.parametrize("words", [["run"], ["run", "x.yaml", "--bogus"], ["bogus"], ["sizes", "--ratio", "much"]])
def test_wrong_usage_is_the_users_mistake(invoke: Invoke, words: list[str]) -> None:
    assert invoke(*words).exit_code == 2


def test_a_mistyped_command_gets_one_suggestion(invoke: Invoke) -> None:
    assert invoke("rnu").stderr.count("Did you mean") == 1


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["rnu"], ["--version"]])
def test_help_and_typos_import_nothing_heavy(words: list[str]) -> None:
    heavy = ["torch", "pandas", "pyarrow", "matplotlib", "scipy", "numpy", "pydantic", "yaml", "flwr", "optuna"]
    script = (
        "import sys\nfrom fedreuse.cli import app\n"
        f"try:\n    app({words})\nexcept SystemExit:\n    pass\n"
        f"loaded = [name for name in {heavy} if name in sys.modules]\nassert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_lists_do_without_torch() -> None:
    script = (
        "import sys\nfrom fedreuse.cli import app\n"
        "for words in (['list', 'methods'], ['list', 'datasets'], ['list', 'gates']):\n"
        "    app(words, standalone_mode=False)\n"
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on_and_the_advice_works(tiny: Path, tmp_path: Path) -> None:
    words = [*FEDREUSE, "run", str(tiny), "rounds.count=2000", "--out", str(tmp_path / "run")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}, preexec_fn=heed_ctrl_c
    ) as process:
        try:
            _wait_for(tmp_path / "run" / "log.txt", "round 3:", process)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == 130
    assert told.startswith("stopped: ")
    assert f"fedreuse run {tiny} rounds.count=2000 --out {tmp_path / 'run'} --resume" in told
    assert "Traceback" not in told


def _wait_for(log: Path, text: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 600
    while not (log.exists() and text in log.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _raise(error: Exception):  # type: ignore[no-untyped-def]
    def fail(*_: object) -> None:
        raise error

    return fail
