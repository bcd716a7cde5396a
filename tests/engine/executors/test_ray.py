"""Ray actors give the same bits as the serial executor, also when an actor or a whole node is lost."""

from __future__ import annotations

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.registry import parse
from fedreuse.engine.executors.ray import Actor, Ray, _connect, _import_ray
from fedreuse.engine.executors.worker import Failure
from fedreuse.engine.faults import RandomFaults
from fedreuse.testing.dying_workers import DyingSetup, SleepingSetup, wake
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.cluster import ray_cluster
from tests.federation import build, is_same

FEDERATION = QuadraticFederation.draw(training=QuadraticTraining(noise=0.1))
FAULTS = RandomFaults(lost=0.1, late=0.1)


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster(2, 2) as nodes:
        yield nodes


def play(method: str, num_rounds: int = 5, **setting) -> Session:
    return Session(FEDERATION, build(method), Setting(cohort=4, faults=FAULTS, **setting)).advance(num_rounds)


def test_what_cannot_be_is_refused(monkeypatch):
    with pytest.raises(ConfigError, match="workers must be at least 1"):
        Ray(0)
    with pytest.raises(ConfigError, match=r"executor\.address"):
        parse(Ray, {"address": 7}, "executor")
    session = Session(FEDERATION, build("fedavg"), Setting())
    with pytest.raises(ConfigError, match="executor: serial"):
        Ray(2).start(FEDERATION.site(session.method, store=session.store, faults=FAULTS))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'fedreuse\[cluster\]'"):
        Ray(2).start(session._site())


@pytest.mark.slow
def test_an_address_where_nobody_is_is_told():
    """Real Ray, which would go on trying for minutes."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound, but nobody listens
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        said = rf"executor\.address is '{address}', but no Ray cluster answers.*ray start --head"
        with pytest.raises(RunError, match=said):
            _connect(_import_ray(), address, 2)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_somebody_who_is_not_ray_is_told_at_once(answer: bytes, capfd: pytest.CaptureFixture[str]):
    def serve(listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line:
            line.recv(100)
            line.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor() as others:
        others.submit(serve, listening)
        with pytest.raises(RunError, match=r"no Ray cluster answers there \(the server there is not Ray\)"):
            _connect(_import_ray(), f"127.0.0.1:{listening.getsockname()[1]}", 2)
    assert capfd.readouterr() == ("", ""), "Ray says nothing before"


def test_this_machine_alone_is_loopback_and_tells_nobody():
    asked = {}

    class Local:
        @staticmethod
        def is_initialized() -> bool:
            return False

        @staticmethod
        def init(address, **options):
            asked.update(options, address=address)

    assert _connect(Local, None, 3)
    assert (asked["address"], asked["_node_ip_address"], asked["num_cpus"]) == ("local", "127.0.0.1", 3)
    assert asked["include_dashboard"] is False


def test_an_actor_tells_what_went_wrong_when_it_was_built():
    import numpy as np

    def broken(arrays):
        raise RunError("no data here")

    told = Actor(broken, np.zeros(1, np.uint8), {}).ready()
    assert isinstance(told, Failure)
    assert str(told.error) == "no data here"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_same_bits_as_serial_when_an_actor_is_killed_and_when_a_node_is_lost(cluster, tmp_path):
    # an actor killed while it plays a client
    client = FEDERATION.cohort(2, 4).clients[1]
    wrap = partial(DyingSetup, folder=str(tmp_path), round_number=2, client=client)
    wounded = Session(
        FEDERATION, build("scaffold"), Setting(cohort=4, faults=FAULTS, executor=Ray(2), wrap_setup=wrap)
    ).advance(5)
    wounded.close()
    alone = play("scaffold")
    assert is_same(wounded.model, alone.model)
    assert wounded.ledger.events == alone.ledger.events
    assert len(list(tmp_path.iterdir())) == 1
    assert f"a worker died on client {client}" in wounded.warnings[0]

    # a node lost with everybody on it, while somebody plays there; there is no room for others. With an address the
    # cores of this machine are no limit: four workers fill both nodes, where two might both be on the one that stays
    asleep = tmp_path / "asleep"
    asleep.mkdir()
    wrap = partial(SleepingSetup, folder=str(asleep), round_number=3)
    session = Session(
        FEDERATION, build("dg_fedreuse"), Setting(cohort=4, faults=FAULTS, executor=Ray(4, "auto"), wrap_setup=wrap)
    )
    session.advance(2)
    with ThreadPoolExecutor(1) as other:
        lost = other.submit(lose_node_of_a_sleeper, cluster, asleep)
        session.advance(3)
        lost.result()
    session.close()
    assert any("died on client" in warning for warning in session.warnings)
    alone = play("dg_fedreuse")
    assert is_same(session.model, alone.model)
    assert session.ledger.events == alone.ledger.events


def lose_node_of_a_sleeper(cluster, asleep):
    node = cluster.worker_nodes.copy().pop()
    (raylet,) = node.all_processes["raylet"]
    try:
        # nobody wakes before: the two workers of the other node cannot play all four clients in the meantime
        deadline = time.monotonic() + 600
        while str(raylet.process.pid) not in {path.read_text() for path in asleep.iterdir()}:
            assert time.monotonic() < deadline, "nobody played on the node that was to be lost"
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)
    finally:
        wake(asleep)
