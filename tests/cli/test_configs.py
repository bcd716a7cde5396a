"""`fedreuse configs`: all shipped files are listed, and a copy runs in another folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.config.shipped import shipped_configs
from tests.cli.conftest import Invoke


def test_every_shipped_configuration_is_listed_with_its_command(invoke: Invoke) -> None:
    listed = {one["name"]: one for one in json.loads(invoke("configs", "--json").stdout)}
    assert listed.keys() == shipped_configs().keys()
    assert [one["name"] for one in listed.values() if not one["summary"]] == []
    assert (listed["digits"]["command"], listed["demo"]["command"]) == ("run", "compare")
    assert (listed["confirm/lean"]["command"], listed["tune/shared"]["command"]) == ("lab confirm", "tune")
    assert "fedreuse run NAME" in invoke("configs").stdout


@pytest.mark.slow
def test_a_copy_brings_the_files_it_names(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("configs", "confirm/lean", "--to", "mine")
    assert done.exit_code == 0, done.output
    assert {path.relative_to(tmp_path / "mine").as_posix() for path in (tmp_path / "mine").rglob("*.*")} == {
        "confirm/lean.yaml", "tune/closest/base.yaml", "fedreuse.schema.json",
    }  # fmt: skip
    assert invoke("configs", "confirm/lean", "--to", "mine").exit_code == 0, "the same copy again"
    (tmp_path / "mine" / "confirm" / "lean.yaml").write_text("task: {name: digits}\n")
    refused = invoke("configs", "confirm/lean", "--to", "mine")
    assert refused.exit_code == 2
    assert "exists with another content" in refused.stderr


def test_a_wrong_name_is_corrected(invoke: Invoke) -> None:
    done = invoke("configs", "paper/mnsit")
    assert done.exit_code == 2
    assert "did you mean 'paper/mnist'" in done.stderr
