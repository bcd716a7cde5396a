"""Memory by place: caches, signatures, residuals, to the byte."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fedreuse.accounting.memory import memory_of
from fedreuse.engine.state.client_store import DiskStore
from fedreuse.testing.quadratic import QuadraticFederation, Setting, quadratic_schema
from tests.federation import build, top_k

EVERYBODY = Setting(cohort=4)


def test_fedavg_holds_a_model_and_clients_nothing() -> None:
    session = QuadraticFederation.draw(4).play(build("fedavg"), 2, EVERYBODY)
    # 12 weights, 6 statistics, a counter: 19 * 8
    sizes = memory_of(session.record, session.store)
    assert sizes["server.model"] == sizes["server.all"] == 152
    assert sizes["clients.all"] == 0


def test_what_links_share_is_held_once() -> None:
    link = {"name": "broadcast", "codec": top_k(0.3), "last": 1}
    session = QuadraticFederation.draw(4).play(build("fedavg", downlink=link), 3, EVERYBODY)
    sizes = memory_of(session.record, session.store)
    shared = session.record.shared["model"]
    assert sizes["server.shared model"] == 96 + len(shared.past[0])
    assert sizes["server.all"] == 152 + sizes["server.shared model"]
    assert "server.downlink model" not in sizes


def test_a_residual_per_client() -> None:
    link = {"name": "error_feedback", "codec": top_k(0.3)}
    session = QuadraticFederation.draw(4).play(build("fedavg", link), 2, EVERYBODY)
    sizes = memory_of(session.record, session.store)
    assert sizes["clients.uplink update"] == sizes["clients.all"] == 4 * 96


def test_caches_are_sparse_and_signatures_are_the_head() -> None:
    session = QuadraticFederation.draw(4).play(build("dg_fedreuse", top_k(0.3)), 1, EVERYBODY)
    sizes = memory_of(session.record, session.store)
    # a cache holds one of 6, one of 4, one of 2 coordinates: three values of 8 and three positions of 4 bytes
    assert sizes["server.cache"] == 4 * 36
    # fc.weight 4 and fc.bias 2 of 8 bytes
    assert sizes["clients.head"] == 4 * 48
    assert sizes["server.all"] == 152 + 144


def test_a_store_on_disk_counts_the_same(tmp_path: Path) -> None:
    # records are read and dropped one by one: an array may get the identity of one that is gone
    federation = QuadraticFederation.draw(12)
    methods = (build("dg_fedreuse", top_k(0.3)), build("fedavg", {"name": "error_feedback", "codec": top_k(0.3)}))
    for number, method in enumerate(methods):
        store = DiskStore(tmp_path / str(number), quadratic_schema())
        there = federation.play(method, 1, Setting(cohort=12, make_store=partial(pass_on, store)))
        here = federation.play(method, 1, Setting(cohort=12))
        assert memory_of(there.record, there.store) == memory_of(here.record, here.store)


def pass_on(store: DiskStore) -> DiskStore:
    return store
