"""What holds for every test: no property fails because the machine was busy, and none allows imports for another.

`--sample N` runs at most N cases of a parametrised test, unless it is marked `whole`.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from hypothesis import settings

from fedreuse.core.allowed import VARIABLE
from tests.sampling import spread

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without modules that a configuration may import, and takes what it allows with it."""
    monkeypatch.setenv(VARIABLE, "")


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
