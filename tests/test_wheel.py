"""The distributions: sdist and wheel are built, hold what they must, and work outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src", "configs")
SMALL = ("rounds.count=1", "task.clients=4", "rounds.cohort=2", "network.width=2", "network.hidden=4")


def do(*words: object, cwd: Path, **environment: str) -> str:
    """Return what a command prints; it must succeed, and knows nothing of the checkout."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is made from it; nothing is written into the checkout."""
    folder = tmp_path_factory.mktemp("built")
    copy = folder / "checkout"
    copy.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, copy / name)
    do(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, copy, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path) -> Path:
    """The wheel in a folder of its own, without the packages it needs: those of this environment are used."""
    (wheel,) = built.glob("*.whl")
    target = built / "installed"
    words = ("install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--target", target, wheel)
    do(sys.executable, "-m", "pip", *words, cwd=built)
    return target


def test_both_hold_the_package_and_its_files(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    package = ROOT / "src" / "fedreuse"
    wanted = {f"fedreuse/{file.relative_to(package)}" for file in package.rglob("*.py")}
    wanted |= {
        f"fedreuse/{name}" for name in ("py.typed", "__init__.pyi", "configs/digits.yaml", "configs/paper/mnist.yaml")
    }
    assert wanted - in_wheel == set()
    assert {f"src/{name}" for name in wanted} - in_sdist == set()
    assert {"LICENSE", "README.md", "pyproject.toml"} <= in_sdist
    assert not [name for name in in_wheel if name.startswith(("tests/", "benchmarks/"))]


def test_the_wheel_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    fedreuse = (sys.executable, "-m", "fedreuse")
    place = "import fedreuse, pathlib; print(pathlib.Path(fedreuse.__file__).parent)"
    package = Path(do(sys.executable, "-c", place, cwd=tmp_path, PYTHONPATH=str(installed)).strip())
    assert package == installed / "fedreuse"
    assert do(*fedreuse, "--version", cwd=tmp_path, PYTHONPATH=str(installed)).startswith("fedreuse ")
    do(*fedreuse, "run", "digits", *SMALL, "--out", "run", cwd=tmp_path, PYTHONPATH=str(installed))
    assert (tmp_path / "run" / "COMPLETE").exists()
    do(*fedreuse, "new-method", "my_method", cwd=tmp_path, PYTHONPATH=str(installed))
    assert list(tmp_path.rglob("my_method.py"))
    file = package / "configs" / "paper" / "fashion_mnist.yaml"
    schema = file.parent / file.read_text(encoding="utf-8").splitlines()[0].rpartition("=")[2]
    assert "$defs" in json.loads(schema.read_text(encoding="utf-8")), "editors find the schema there, too"


@pytest.mark.long
def test_the_demo_learns_in_an_environment_of_its_own(built: Path, tmp_path: Path) -> None:
    """The wheel with the extra `sim`, in the pinned versions; this downloads."""
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "environment", with_pip=True)
    programs = tmp_path / "environment" / "bin"
    words = ("install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt", f"{wheel}[sim]")
    do(programs / "python", "-m", "pip", *words, cwd=tmp_path)
    assert json.loads(do(programs / "fedreuse", "demo", "--json", "--out", "demo", cwd=tmp_path))
    assert (tmp_path / "demo").is_dir()
