"""Who imports whom: the contract holds, and the core works where there is no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIGHT = [
    "accounting", "compression.codecs", "compression.links", "compression.wire.envelope", "core", "core.corrections",
    "core.errors", "core.randomness", "core.registry", "core.schema", "core.tensors", "engine",
    "engine.executors.serial", "engine.rounds", "engine.state.checkpoint", "methods",
    "methods.aggregators.aggregator", "methods.gates", "methods.server_steps.server_step", "report",
    "store.directory", "testing.conformance",
]  # fmt: skip


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.slow
def test_the_core_works_without_torch() -> None:
    # torch, torchvision and scikit-learn are not merely not imported: importing them fails
    script = f"""
import importlib, sys
for name in ("torch", "sklearn"):
    sys.modules[name] = None
for name in {LIGHT!r}:
    importlib.import_module("fedreuse." + name)
from fedreuse.testing.cases import Case
from fedreuse.testing.quadratic import QuadraticFederation
session = QuadraticFederation.draw(3).play(Case("dg_fedreuse").build(), 2)
print(session.round_number)
"""
    done = run(script)
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr


@pytest.mark.slow
def test_reports_are_rebuilt_without_engine_learning_or_methods() -> None:
    script = """
import importlib, pkgutil, sys
import fedreuse.report
for found in pkgutil.walk_packages(fedreuse.report.__path__, "fedreuse.report."):
    importlib.import_module(found.name)
heavy = ("torch", "fedreuse.engine", "fedreuse.learning", "fedreuse.methods")
print([name for name in heavy if name in sys.modules])
"""
    done = run(script)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_the_package_itself_is_light() -> None:
    done = run("import fedreuse, sys; print('torch' in sys.modules, 'numpy' in sys.modules)")
    assert done.stdout == "False False\n", done.stderr


@pytest.mark.slow
def test_the_import_contract_holds() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    if not program.exists():
        pytest.skip("import-linter is not installed")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_nothing_is_ever_unpickled() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text, path
        assert "allow_pickle=True" not in text, path
