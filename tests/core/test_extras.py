"""Optional packages: the table is that of the package's metadata, and a missing package is named with its extra."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fedreuse.core.errors import UserError
from fedreuse.core.extras import EXTRAS, INCLUDED, MissingPackage, missing_package, missing_packages, needs_package

ROOT = Path(__file__).parents[2]
OFFERED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
NAMES = {"scikit-learn": "sklearn", "pillow": "PIL", "mlflow-skinny": "mlflow", "markdown-it-py": "markdown_it"}
"""Import names of the packages that are imported under another name than they are installed by."""


def test_the_table_is_that_of_the_metadata() -> None:
    assert {*EXTRAS} == {*OFFERED} - {"all", "dev", "docs"}
    for extra, packages in EXTRAS.items():
        wanted = [Requirement(line) for line in OFFERED[extra]]
        names = [NAMES.get(one.name, one.name) for one in wanted if one.name != "fedreuse"]
        assert names == [*packages], extra
        (contained,) = [tuple(sorted(one.extras)) for one in wanted if one.name == "fedreuse"] or [()]
        assert contained == tuple(sorted(INCLUDED.get(extra, ()))), extra


def test_all_holds_every_extra_of_users() -> None:
    (line,) = OFFERED["all"]
    assert Requirement(line).extras == {*EXTRAS}


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    wanted = r"executor: ray needs .*pip install 'fedreuse\[cluster\]'"
    with pytest.raises(MissingPackage, match=wanted) as raised, needs_package("executor: ray"):
        import ray  # noqa: F401
    assert isinstance(raised.value, UserError)
    assert isinstance(raised.value, ImportError)
    assert raised.value.name == "ray"


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), needs_package():
        import no_such_package  # noqa: F401
    assert missing_package(ValueError("torch")) is None
    assert missing_package(ImportError("cannot import name", name="torch")) is None


def test_missing_packages_count_those_of_contained_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "report", ("no_such_package", "json"))
    monkeypatch.setitem(EXTRAS, "cli", ())
    monkeypatch.setitem(EXTRAS, "sim", ())
    assert missing_packages("sim") == ["no_such_package"]
    assert missing_packages("cli") == []


WITHOUT = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
"""
HEAVY = tuple(name for extra in ("cli", "report", "sim") for name in EXTRAS[extra])


def without(blocked: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process where packages cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(blocked=blocked) + code],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip


@pytest.mark.slow
def test_the_package_and_its_core_need_no_extra() -> None:
    names = "Registry, MethodConfig, Link, Codec, Gate, Aggregator, ServerStep, Tensors, Message, registries, describe"
    found = without((*HEAVY, "flwr"), f"from fedreuse import {names}\nimport fedreuse\nprint(fedreuse.__version__)")
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_a_public_name_says_which_extra_it_needs() -> None:
    found = without(HEAVY, "import fedreuse\nfedreuse.run")
    assert "fedreuse.run needs the package torch, which is not installed; pip install 'fedreuse[sim]'" in found.stderr


def test_the_command_says_which_extra_it_needs() -> None:
    found = without(HEAVY, "from fedreuse.__main__ import main\nmain()")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("error: the command line needs the package")
    assert "fedreuse[cli]" in found.stderr


EXCHANGE = """
import tempfile
from pathlib import Path
from flwr.supercore.task_identity import TaskIdentity
from fedreuse.deploy import FedReuseStrategy, ResidentApp
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining
from tests.deploy.app_grid import AppGrid, quadratic_app, record_of
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
federation = QuadraticFederation.draw(4, QuadraticTraining(lr=0.05), seed=3)
strategy = FedReuseStrategy("fed_ef", min_available_nodes=4, fraction_evaluate=0.0)
with tempfile.TemporaryDirectory() as folder:
    strategy.start(AppGrid(Path(folder), quadratic_app(federation), 4), record_of(federation), 2)
    from flwr.serverapp.strategy import FedAvg
    from fedreuse.deploy import Lean, compression_mod
    from tests.deploy import compressed_app
    lean = Lean(FedAvg(**compressed_app.FLOWER), budget=0.3)
    compressed_app.run(lean, Path(folder) / "lean", rounds=2)
print(min(len(strategy.ledger.rows), lean.traffic.total("up")))
"""


@pytest.mark.slow
def test_an_existing_flower_app_on_arrays_needs_no_torch() -> None:
    pytest.importorskip("flwr")
    blocked = tuple(name for name in HEAVY if name not in EXTRAS["cli"])  # flwr brings a command line of its own
    found = without(blocked, EXCHANGE)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 0
