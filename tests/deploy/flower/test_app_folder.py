"""The app folder: complete, flat, and the same configuration again."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from flwr.cli.config_utils import load_and_validate
from flwr.common.config import flatten_dict

from fedreuse.core.errors import RunDirectoryError
from fedreuse.deploy.flower.app_folder import PACKAGE, write_app
from fedreuse.deploy.flower.flat_config import from_flat
from fedreuse.deploy.flower.options import Deployment
from tests.tiny import tiny


def test_flower_accepts_the_folder_and_reads_the_same_run(tmp_path: Path) -> None:
    config, options = tiny(method={"name": "dg_fedreuse"}), Deployment(out="runs/mine")
    folder = write_app(config, options, tmp_path / "app")
    assert sorted(path.name for path in (folder / PACKAGE).iterdir()) == ["__init__.py", "client.py", "server.py"]
    read, _ = load_and_validate(folder / "pyproject.toml")  # it imports the package, which may leave bytecode there
    assert from_flat(flatten_dict(read["tool"]["flwr"]["app"]["config"])) == (config, options)


def test_the_name_is_one_that_flower_takes_whatever_the_run_is_called(tmp_path: Path) -> None:
    folder = write_app(tiny(task={"name": "fashion_mnist", "clients": 6}), Deployment(), tmp_path / "app")
    name = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"]
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,31}", name)


def test_no_key_is_nested_deeper_than_its_dots(tmp_path: Path) -> None:
    folder = write_app(tiny(), Deployment(), tmp_path / "app")
    text = (folder / "pyproject.toml").read_text()
    keys = text.split("[tool.flwr.app.config]\n")[1]
    assert all(" = " in line and not line.startswith("[") for line in keys.splitlines())
    assert tomllib.loads(text)["tool"]["flwr"]["app"]["config"]["rounds"]["count"] == 4


def test_an_app_is_written_anew_and_nothing_else_is_touched(tmp_path: Path) -> None:
    write_app(tiny(), Deployment(), tmp_path / "app")
    write_app(tiny("seed=7"), Deployment(), tmp_path / "app")
    assert "seed = 7\n" in (tmp_path / "app" / "pyproject.toml").read_text()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(RunDirectoryError, match="other files"):
        write_app(tiny(), Deployment(), tmp_path / "other")
