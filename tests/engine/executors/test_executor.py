"""What executors share: names, replies, sites."""

from __future__ import annotations

from fedreuse.core.bench import Work
from fedreuse.engine.client_store import MemoryStore
from fedreuse.engine.executors.executor import Reply, Site, executors
from fedreuse.engine.faults import NoFaults
from fedreuse.testing.quadratic import QuadraticFederation
from fedreuse.wire.envelope import Envelope
from tests.federation import build


def test_the_known_ones() -> None:
    assert "serial" in executors.names()


def test_a_reply_is_in_time_unless_said_otherwise() -> None:
    assert Reply(1, Envelope("update", 1, 1), Work()).status == "in_time"


def test_a_site_holds_what_plays_the_clients() -> None:
    federation = QuadraticFederation.draw(2)
    site = Site(federation.workplace(build("fedavg")), MemoryStore(), NoFaults(), 7)
    assert site.workplace.bench(1, 3).schema == site.schema
