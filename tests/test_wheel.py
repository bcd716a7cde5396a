"""The wheel, in an environment of its own and outside the checkout: demo, a new method, shipped configurations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.long


def do(*words: object, cwd: Path) -> str:
    """What a command prints; it must succeed, and knows nothing of the checkout."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV"))}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and what it needs, in the pinned versions."""
    place = tmp_path_factory.mktemp("wheel")
    do(sys.executable, "-m", "build", "--wheel", "--outdir", place, ROOT, cwd=place)
    (wheel,) = place.glob("*.whl")
    venv.create(place / "environment", with_pip=True)
    programs = place / "environment" / "bin"
    words = ("install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt", wheel)
    do(programs / "python", "-m", "pip", *words, cwd=place)
    return programs


def test_the_demo_learns(installed: Path, tmp_path: Path) -> None:
    told = json.loads(do(installed / "fedreuse", "demo", "--json", "--out", "demo", cwd=tmp_path))
    assert told
    assert (tmp_path / "demo").is_dir()


def test_a_new_method_is_written(installed: Path, tmp_path: Path) -> None:
    do(installed / "fedreuse", "new-method", "my_method", cwd=tmp_path)
    assert list(tmp_path.rglob("my_method.py"))


def test_shipped_configurations_are_found_by_name(installed: Path, tmp_path: Path) -> None:
    do(installed / "fedreuse", "run", "digits", "rounds.count=2", "--out", "run", cwd=tmp_path)
    assert (tmp_path / "run" / "COMPLETE").exists()
    found = "import fedreuse, pathlib; print(pathlib.Path(fedreuse.__file__).parent)"
    package = Path(do(installed / "python", "-c", found, cwd=tmp_path).strip())
    assert not package.is_relative_to(ROOT)
    file = package / "configs" / "paper" / "fashion_mnist.yaml"
    schema = file.parent / file.read_text(encoding="utf-8").splitlines()[0].rpartition("=")[2]
    assert "$defs" in json.loads(schema.read_text(encoding="utf-8")), "editors find the schema there, too"
