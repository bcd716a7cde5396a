"""What a configuration may import, and what it may not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedreuse.config.run_config import load
from fedreuse.core.allowed import VARIABLE, allow, allowed, check_module, check_target
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import load_object

TASK: dict[str, Any] = {"task": {"name": "digits", "clients": 4}, "rounds": {"cohort": 2}}
NET = "from torch import nn\n\n\nclass Net(nn.Linear):\n    def __init__(self):\n        super().__init__(2, 2)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that no import of the test leaves a trace of; the test runs elsewhere."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return tmp_path


@pytest.mark.parametrize("name", ["os:system", "subprocess:run", "builtins:exec", "posix:system", "shutil:rmtree"])
def test_a_configuration_runs_no_shell(name: str) -> None:
    command = {"name": name, "command": "touch forbidden"}
    with pytest.raises(ConfigError, match=rf"^network\.name: importing '{name.partition(':')[0]}' is refused.*--allow"):
        load({**TASK, "network": command})
    with pytest.raises(ConfigError, match=r"^task\.loss\.name: importing"):
        load({**TASK, "task": {**TASK["task"], "loss": command}})


@pytest.mark.parametrize(
    "name",
    [
        "fedreuse.core.files:write_whole",  # a tool
        "fedreuse.cli.nodes:quote",  # passed through
        "fedreuse.core.registry:importlib",
        "torch.nn.modules.module:warnings",
        "torch.nn:os",
        "torch.hub:load",
    ],
)
def test_the_packages_that_are_allowed_hold_no_way_round(name: str) -> None:
    with pytest.raises(ConfigError, match=r"refused|has no"):
        load_object(name, "task.path")


def test_parts_of_fedreuse_and_of_torch_may_be_named() -> None:
    assert load_object("torch.nn.functional:cross_entropy", "x").__name__ == "cross_entropy"
    assert load_object("torch.nn:Linear", "x").__name__ == "Linear"
    assert load_object("fedreuse.compression.codecs.top_k:TopK", "x").__name__ == "TopK"


def test_modules_beside_the_file_may_be_named_and_no_others(folder: Path) -> None:
    (folder / "beside_the_file.py").write_text(NET)
    (folder / "elsewhere" / "where_one_stands.py").write_text(NET)
    file = folder / "small.yaml"
    file.write_text("{task: {name: digits, clients: 4}, rounds: {cohort: 2}, network: 'beside_the_file:Net'}")
    assert load(file).to_plain()["network"] == {"name": "beside_the_file:Net"}
    with pytest.raises(ConfigError, match=rf"'where_one_stands' is refused.*its own folder \({folder}\)"):
        load(file, ["network=where_one_stands:Net"])
    load(file, ["network=where_one_stands:Net"], allow=["where_one_stands"])
    load(file, ["network=where_one_stands:Net"], allow=["."])


def test_a_file_beside_the_configuration_that_is_called_like_a_library_opens_nothing(folder: Path) -> None:
    for name in ("os", "json", "posix"):
        (folder / f"{name}.py").write_text(NET)
    (folder / "subprocess").mkdir()
    allow([folder])
    before = list(sys.path)
    for module in ("os", "json", "posix", "subprocess"):
        with pytest.raises(ConfigError, match="is refused"):
            check_module(module, "network.name")
    assert sys.path == before


def test_a_name_allows_what_is_below_it_and_nothing_that_begins_like_it() -> None:
    allow(["xml.dom"])
    check_module("xml.dom", "x")
    check_module("xml.dom.minidom", "x")
    for module in ("xml", "xml.domino", "xml.sax"):
        with pytest.raises(ConfigError, match="is refused"):
            check_module(module, "x")


def test_who_allows_a_package_may_name_all_that_it_shows() -> None:
    allow(["fedreuse.cli"])
    check_target(len, "fedreuse.cli.deploy", "x")


@pytest.mark.parametrize("entry", ["os:system", "", "a b", "mine.py,other"])
def test_an_entry_is_a_module_or_a_folder(entry: str) -> None:
    with pytest.raises(ConfigError, match="names no module"):
        allow([entry])


def test_what_was_allowed_is_kept_once_and_reaches_processes(folder: Path) -> None:
    allow(["one", "./there"])
    allow(["one"])
    assert allowed() == ("one", str(folder / "elsewhere" / "there"))
    script = "from fedreuse.core.allowed import allowed; print(*allowed())"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split() == list(allowed())
    with pytest.raises(ConfigError, match="with ':' in its name"):
        allow([Path("a:b")])
    assert os.environ[VARIABLE] == os.pathsep.join(allowed())


def test_a_module_that_does_not_exist_is_not_called_refused(folder: Path) -> None:
    allow([folder])
    with pytest.raises(ConfigError, match=r"x: there is no module 'missing_here', .*correct the name") as error:
        check_module("missing_here.nets", "x")
    assert str(folder) in str(error.value)
