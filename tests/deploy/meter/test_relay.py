"""The relay on real sockets: exact counts, order, a rate, a delay, a cut cable, peers that go away."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from threading import Thread
from time import monotonic

import pytest

from fedreuse.deploy.meter.conditions import FREE, Conditions
from fedreuse.deploy.meter.relay import Relay, Relays
from tests.deploy.lines import counting_server, exchange


@pytest.fixture
def relays() -> Iterator[Relays]:
    relays = Relays()
    yield relays
    relays.close()


def open_to(relays: Relays, target: tuple[str, int], up: Conditions = FREE, down: Conditions = FREE) -> tuple:
    counts: Counter[str] = Counter()
    return relays.open(target, lambda way, size: counts.update({way: size}), up, down), counts


def test_every_byte_is_counted_once(relays: Relays) -> None:
    with counting_server(reply_bytes=300_000) as server:
        relay, counts = open_to(relays, server)
        assert exchange(relay.address, 1_000_003) == (1_000_003, 300_000)
        assert exchange(relay.address, 0) == (0, 300_000)
    assert counts == {"up": 1_000_003, "down": 2 * 300_020}
    assert relay.num_connections == 2
    assert relay.address[0] == "127.0.0.1"


def test_bytes_arrive_as_they_were_sent(relays: Relays) -> None:
    sent = bytes(range(256)) * 2000
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay, _ = open_to(relays, server.getsockname()[:2], up=Conditions(5e7, 0.001))
        with socket.create_connection(relay.address, 10) as near:
            far, _ = server.accept()
            with far:
                sender = Thread(target=lambda: (near.sendall(sent), near.shutdown(socket.SHUT_WR)))
                sender.start()
                got = b"".join(iter(lambda: far.recv(65536), b""))
                sender.join()
                far.sendall(b"thanks")  # the other direction is still open
                assert near.recv(6, socket.MSG_WAITALL) == b"thanks"
    assert got == sent


@pytest.mark.slow
def test_a_rate_and_a_delay_cost_at_least_their_time(relays: Relays) -> None:
    # 250,000 bytes at 10 Mbit/s are 0.2 s; the handshake and the way itself 0.1 s each
    with counting_server() as server:
        relay, _ = open_to(relays, server, up=Conditions(1e7, 0.1))
        began = monotonic()
        assert exchange(relay.address, 250_000) == (250_000, 0)
        assert monotonic() - began >= 0.4


@pytest.mark.slow
def test_two_connections_share_one_line(relays: Relays) -> None:
    # twice 125,000 bytes at 10 Mbit/s: 0.2 s together
    with counting_server() as server:
        relay, _ = open_to(relays, server, up=Conditions(1e7))
        threads = [Thread(target=exchange, args=(relay.address, 125_000)) for _ in range(2)]
        began = monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert monotonic() - began >= 0.2


@pytest.mark.slow
def test_a_cut_cable_lets_nothing_through_until_it_is_mended(relays: Relays) -> None:
    with counting_server() as server:
        relay, _ = open_to(relays, server)
        relay.cut()
        with pytest.raises(TimeoutError):
            exchange(relay.address, 10, timeout=0.3)
        relay.restore()
        assert exchange(relay.address, 10) == (10, 0)


def test_a_server_that_is_not_there_ends_the_connection(relays: Relays) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()[:2]
    relay, _ = open_to(relays, address)
    with socket.create_connection(relay.address, 10) as near:
        assert ended(near)


def test_a_side_that_goes_away_takes_the_other_along(relays: Relays) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay, _ = open_to(relays, server.getsockname()[:2])
        with socket.create_connection(relay.address, 10) as near:
            far, _ = server.accept()
            far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            far.close()  # a reset
            assert ended(near)


def test_closing_ends_open_connections() -> None:
    relays = Relays()
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay: Relay = open_to(relays, server.getsockname()[:2])[0]
        with socket.create_connection(relay.address, 10) as near:
            server.accept()[0].close()
            relays.close()
            relays.close()
            assert ended(near)


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
