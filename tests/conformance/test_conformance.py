"""Every case of the table against every check of the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.lbgm import Lbgm
from fedreuse.compression.links.link import links, parse_link
from fedreuse.compression.links.plain import Plain
from fedreuse.core.method import Link
from fedreuse.engine.executors.executor import ExecutorConfig, executors
from fedreuse.engine.executors.pool import Pool
from fedreuse.engine.executors.ray import Ray
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.state.client_store import DiskStore, MemoryStore
from fedreuse.testing.cases import Case
from fedreuse.testing.conformance import (
    EXECUTOR_CHECKS,
    LINK_CHECKS,
    METHOD_CHECKS,
    STORE_CHECKS,
    check_card,
    check_table,
)
from fedreuse.testing.quadratic import quadratic_schema
from tests.cluster import ray_cluster
from tests.conformance.cases import CASES

SLOW = [pytest.mark.slow]
CARDS = Path(__file__).parents[2] / "docs" / "methods"
LINKS = [
    *(Plain(codecs.parse(name, "codec")) for name in codecs.names()),
    Plain(TopK(0.3)),
    *(parse_link(name, "link") for name in links.names()),
    ErrorFeedback(TopK(0.3)),
    ErrorFeedback(TopK(0.3), decay=0.5),
    Lbgm(0.9, codec=TopK(0.3), residual=True),
    Lbgm(0.9, "model"),
    Delta(TopK(0.3), start="initial"),
]
PAIRS = [
    # every case and every check has its turn in the fast tests: a check for each case, one after another
    pytest.param(case, check, id=f"{case.id}-{name}", marks=[] if place == number % len(METHOD_CHECKS) else SLOW)
    for number, case in enumerate(CASES)
    for place, (name, check) in enumerate(METHOD_CHECKS.items())
]
EXECUTORS = [Serial("fast"), Serial("strict"), Pool(2), Ray(2)]
MARKS: dict[type, list[pytest.MarkDecorator]] = {
    Pool: SLOW,
    Ray: [*SLOW, pytest.mark.filterwarnings("ignore")],
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Ray, started once for all checks."""
    with ray_cluster(2) as nodes:
        yield nodes


def test_every_method_has_a_case_and_every_case_a_card() -> None:
    check_table(CASES, CARDS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_card_lists_what_crosses(case: Case) -> None:
    check_card(case, CARDS)


@pytest.mark.whole
@pytest.mark.parametrize(("case", "check"), PAIRS)
def test_method(case: Case, check: Callable[[Case], None]) -> None:
    check(case)


@pytest.mark.parametrize("check", LINK_CHECKS.values(), ids=LINK_CHECKS.keys())
@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_link(link: Link, check: Callable[[Link], None]) -> None:
    check(link)


@pytest.mark.parametrize("check", STORE_CHECKS.values(), ids=STORE_CHECKS.keys())
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_store(kind: str, check: Callable[..., None], tmp_path: Path) -> None:
    places = (tmp_path / str(number) for number in range(100))
    check(MemoryStore if kind == "memory" else lambda: DiskStore(next(places), quadratic_schema()))


@pytest.mark.parametrize("check", EXECUTOR_CHECKS.values(), ids=EXECUTOR_CHECKS.keys())
@pytest.mark.parametrize("executor", [pytest.param(e, marks=MARKS.get(type(e), []), id=repr(e)) for e in EXECUTORS])
def test_executor(
    executor: ExecutorConfig, check: Callable[[ExecutorConfig], None], request: pytest.FixtureRequest
) -> None:
    if isinstance(executor, Ray):
        request.getfixturevalue("cluster")
    check(executor)


def test_every_executor_is_listed_here() -> None:
    assert {executors.name_of(executor) for executor in EXECUTORS} == set(executors.names())
