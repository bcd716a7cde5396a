"""`fedreuse new-method`: skeletons that run, pass their tests and conform at once, and never overwrite."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.cli.new_method import add_case, find_checkout
from fedreuse.core.errors import UserError
from tests.cli.conftest import Invoke

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_in_any_folder_it_runs_and_passes_its_test(invoke: Invoke, in_folder: Path) -> None:
    shown = invoke("new-method", "fed_sample")
    assert shown.exit_code == 0, shown.stderr
    names = ["fed_sample.md", "fed_sample.py", "fed_sample.yaml", "test_fed_sample.py"]
    assert sorted(file.name for file in in_folder.iterdir()) == names
    small = ["rounds.count=2", "task.clients=6", "rounds.cohort=3", "network=mlp"]
    ran = invoke("run", "fed_sample.yaml", *small, "--json")
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["method"] == "fed_sample:FedSample"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_fed_sample.py"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    before = {file: file.read_bytes() for file in in_folder.iterdir() if file.is_file()}
    again = invoke("new-method", "fed_sample")
    assert again.exit_code == 2
    assert "is not overwritten" in again.stderr
    assert all(file.read_bytes() == content for file, content in before.items())


def test_one_file_in_the_way_and_none_is_written(invoke: Invoke, in_folder: Path) -> None:
    (in_folder / "fed_sample.md").write_text("mine")
    assert invoke("new-method", "fed_sample").exit_code == 2
    assert [file.name for file in in_folder.iterdir()] == ["fed_sample.md"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("9lives", "cannot name a method"),
        ("fed-example", "cannot name a method"),
        ("FedExample", "in lower case"),
        ("class", "cannot name a method"),
        ("fedavg", "describe fedavg"),
        ("json", "Python module"),
    ],
)
def test_names_that_are_refused(invoke: Invoke, in_folder: Path, name: str, text: str) -> None:
    shown = invoke("new-method", name)
    assert shown.exit_code == 2
    assert text in shown.stderr
    assert list(in_folder.iterdir()) == []


@pytest.mark.slow
def test_in_a_checkout_it_conforms_lints_and_nothing_else_is_touched(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    before = _contents(copy)
    path = os.pathsep.join([str(copy / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def call(*words: str) -> None:
        subprocess.run([sys.executable, *words], cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)

    call("-c", "from fedreuse.cli import app; app(['new-method', 'fed_sample'])")
    after = _contents(copy)
    files = ["src/fedreuse/methods/fed_sample.py", "docs/methods/fed_sample.md", "tests/methods/test_fed_sample.py"]
    cases = "tests/conformance/cases.py"
    assert {name for name in after if after[name] != before.get(name)} == {*files, cases}
    assert after[cases].count("\n") == before[cases].count("\n") + 1
    call("-m", "pytest", "-q", "-p", "no:cacheprovider", files[2], "tests/conformance", "-k", "fed_sample")
    call("-m", "ruff", "check", files[0], files[2], cases)
    call("-m", "ruff", "format", "--check", files[0], files[2], cases)


def test_a_checkout_is_recognised_from_below() -> None:
    assert find_checkout(ROOT) == ROOT
    assert find_checkout(ROOT / "src" / "fedreuse") == ROOT
    assert find_checkout(Path("/")) is None


def test_the_line_goes_to_the_end_of_the_table(tmp_path: Path) -> None:
    table = tmp_path / "cases.py"
    table.write_text('X = [\n]\nCASES = [\n    Case("a"),\n]\nAFTER = 1\n')
    assert add_case(table, "b") == 'X = [\n]\nCASES = [\n    Case("a"),\n    Case("b"),\n]\nAFTER = 1\n'
    table.write_text("CASES = ()\n")
    with pytest.raises(UserError, match="by hand"):
        add_case(table, "b")
    with pytest.raises(UserError, match="missing"):
        add_case(tmp_path / "absent.py", "b")


def _contents(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {str(file.relative_to(folder)): file.read_text(errors="replace") for file in files}
