"""What executors share: names, replies, sites."""

from __future__ import annotations

import pytest

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.local_trainer import Work
from fedreuse.core.message import Message
from fedreuse.core.model import to_groups
from fedreuse.engine.executors.executor import ExecutorWrapper, Reply, executors
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.ports import ServerPort
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import build


def test_the_known_ones() -> None:
    assert "serial" in executors.names()


def test_a_reply_is_in_time_unless_said_otherwise() -> None:
    assert Reply(1, Envelope("update", 1, 1), Work()).status == "in_time"


def test_a_wrapper_passes_everything_on() -> None:
    federation = QuadraticFederation.draw(2)
    method, store = build("fed_ef"), MemoryStore()
    site = federation.site(method, store=store)
    inner = Serial().start(site)
    wrapper = ExecutorWrapper(inner)
    port = ServerPort(method, ServerRecord(None), 1, federation.schema, 7)
    requests = port.pack(dict.fromkeys((0, 1), Message("train", to_groups(federation.initial, "model"))))
    assert [reply.client for reply in wrapper.exchange(requests)] == [0, 1]
    assert set(store.load(0).memories) == {1}
    wrapper.end_round({0: 0, 1: 1})
    assert (set(store.load(0).memories), set(store.load(1).memories)) == (set(), {1})  # the inner one settled them
    assert wrapper.evaluate(federation.initial, 5) == inner.evaluate(federation.initial, 5)
    wrapper.close()


def test_a_site_holds_what_plays_the_clients() -> None:
    federation = QuadraticFederation.draw(2)
    site = federation.site(build("fedavg"))
    assert site.trainer(1, 3).schema == site.schema


@pytest.mark.parametrize(
    ("asked", "cores", "cohort", "count", "told"),
    [
        (2, 4, 3, 2, []),
        (100_000, 4, 10, 4, ["4 workers instead of 100000: there are 4 cores"]),
        (12, 16, 2, 2, ["2 workers instead of 12: a cohort has 2 clients"]),
        (5, 8, None, 5, []),
    ],
)
def test_no_more_workers_than_cores_and_clients(asked, cores, cohort, count, told) -> None:
    federation, notes = QuadraticFederation.draw(2), []
    site = federation.site(build("fedavg"), warn=notes.append, cohort=cohort)
    assert site.num_workers(asked, cores) == count
    assert notes == told
