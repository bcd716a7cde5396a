"""Shipped configurations by name, wherever the program runs; a file that is there comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse import load
from fedreuse.config.shipped import find_config, shipped_configs
from fedreuse.core.errors import ConfigError
from fedreuse.studies.study import load_study

CONFIGS = Path(__file__).parents[2] / "configs"


def test_every_configuration_of_the_source_is_shipped() -> None:
    shipped = shipped_configs()
    assert set(shipped) == {file.relative_to(CONFIGS).with_suffix("").as_posix() for file in CONFIGS.rglob("*.yaml")}


@pytest.mark.parametrize("name", ["digits", "digits.yaml", "configs/digits.yaml"])
def test_by_name_in_another_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(name).run_id == load(CONFIGS / "digits.yaml").run_id
    assert load_study("demo").runs


def test_a_file_that_is_there_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").write_text("task: {name: synthetic}")
    assert load("digits").to_plain()["task"]["name"] == "synthetic"
    assert find_config("digits") == Path("digits")


def test_an_unknown_name_is_told_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="paper/mnits: no such file"):
        load("paper/mnits")
