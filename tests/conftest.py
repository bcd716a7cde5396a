"""What holds for every test: no property fails because the machine was busy, and none allows imports for another.

`--sample N` runs at most N cases of a parametrised test, unless it is marked `whole`.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from uuid import uuid4

import pytest
from hypothesis import settings

from fedreuse.core.allowed import VARIABLE
from tests.sampling import spread

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")
os.environ["FEDREUSE_HOME"] = tempfile.mkdtemp(prefix="fedreuse-tests-")  # for fixtures of a session or module


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without modules that a configuration may import, and takes what it allows with it."""
    monkeypatch.setenv(VARIABLE, "")


@pytest.fixture(autouse=True)
def own_ledger(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each test counts its own evaluations of test sets, and none enters the user's ledger."""
    monkeypatch.setenv("FEDREUSE_HOME", str(tmp_path_factory.getbasetemp() / f"home-{uuid4().hex}"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make fast` take a sample."""
    parser.addoption("--sample", type=int, metavar="N", help="at most N cases (2 or more) of a parametrised test")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker a core, and one more where tests of real processes wait: another one computes meanwhile."""
    return len(os.sched_getaffinity(0)) + (config.getoption("--sample") is None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases beyond the sample; marks have had their say before, so that what is left is sampled."""
    most: int | None = config.getoption("--sample")
    if most is None:
        return
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid if item.get_closest_marker("whole") else item.nodeid.partition("[")[0]].append(item)
    kept = {item for same in cases.values() for item in spread(same, most)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
