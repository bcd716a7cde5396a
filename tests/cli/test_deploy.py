"""`fedreuse deploy`: the app folder, and refused options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Invoke
from tests.tiny import TINY


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def test_an_app_folder_is_written_and_the_next_step_named(invoke: Invoke, tmp_path: Path, config: Path) -> None:
    words = ["deploy", config, "seed=9", "deploy.timeout_seconds=60", "--out", tmp_path / "app"]
    done = invoke(*words)
    assert done.exit_code == 0, done.stderr
    assert "flwr run" in done.stdout
    project = (tmp_path / "app" / "pyproject.toml").read_text()
    assert "\nseed = 9\n" in project
    assert "\ndeploy.timeout_seconds = 60.0\n" in project
    shown = json.loads(invoke(*words, "--json").stdout)
    assert (shown["folder"], shown["clients"]) == (str(tmp_path / "app"), 6)


def test_after_ctrl_c_the_command_to_continue_has_every_option(
    invoke: Invoke, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fedreuse.cli.deploy.run_configuration", interrupt)
    words = ["deploy", config, "--local", "6", "--out", tmp_path, "--meter", "relay", "--delay", "50ms", "--tls"]
    done = invoke(*words, "--data", "at home", "--both-ways", "--no-resident", "--allow", "mine")
    assert done.exit_code == 130
    again = done.stderr.split("\n")[1]
    for option in (
        "--meter relay --delay 50ms",
        "--tls",
        "--data 'at home'",
        "--both-ways",
        "--no-resident",
        "--resume",
    ):
        assert option in again
    assert f"--allow mine --local 6 --out {tmp_path}" in again
    assert "--bandwidth" not in again


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--out", "app"], "CONFIG"),
        (["CONFIG"], "--out FOLDER"),
        (["CONFIG", "deploy.timeout=3", "--out", "app"], "timeout_seconds"),
        (["CONFIG", "--local", "2"], "task.clients=2"),
        (["CONFIG", "--local", "6", "--loss", "1%"], "--meter namespace"),
        (["CONFIG", "--local", "6", "--meter", "radio"], "relay or namespace"),
        (["CONFIG", "--local", "6", "--meter", "relay", "--delay", "slow"], "such as 50ms"),
    ],
)
def test_what_is_refused_says_the_way_out(invoke: Invoke, config: Path, words: list[str], reason: str) -> None:
    done = invoke("deploy", *(config if word == "CONFIG" else word for word in words))
    assert (done.exit_code, reason in done.stderr) == (2, True), done.stderr
