"""Packets between two namespaces: counts equal the kernel's, loss is repaired by TCP and paid for, a cut is a cut."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from time import monotonic, sleep

import pytest

from fedreuse.deploy.meter.conditions import FREE, Conditions
from fedreuse.deploy.meter.packet_line import DOOR_ADDRESS, PacketLine
from tests.deploy.lines import needs_namespaces, sending_command

pytestmark = needs_namespaces
Open = Callable[..., tuple[PacketLine, Counter[str]]]


@pytest.fixture
def open_line() -> Iterator[Open]:
    lines = []

    def open_one(up: Conditions = FREE, down: Conditions = FREE) -> tuple[PacketLine, Counter[str]]:
        counts: Counter[str] = Counter()
        lines.append(PacketLine(lambda way, size: counts.update({way: size}), up, down))
        return lines[-1], counts

    yield open_one
    for line in lines:
        line.close()


def send(line: PacketLine, num_bytes: int) -> str:
    """One connection of a process in the node's namespace to a server behind the door."""
    with line.door.call(lambda: socket.create_server((DOOR_ADDRESS, 0))) as server:
        command = line.node.command(sending_command(server.getsockname(), num_bytes))
        node = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        server.settimeout(30)
        connection, _ = server.accept()
        with connection:
            total = sum(len(data) for data in iter(lambda: connection.recv(65536), b""))
            connection.sendall(f"{total:020d}".encode())
        return node.communicate(timeout=30)[0].strip()


def test_counts_are_those_of_the_interface(open_line: Open) -> None:
    line, counts = open_line()
    assert send(line, 500_000) == "500000"
    for _ in range(50):  # the last acknowledgements may be on their way
        kernel = line.node.statistics("node0")
        if (counts["up"], counts["down"]) == (kernel["tx_bytes"], kernel["rx_bytes"]):
            break
        sleep(0.05)
    assert (counts["up"], counts["down"]) == (kernel["tx_bytes"], kernel["rx_bytes"])
    # at least 500,000 / 1448 = 346 packets of data, each with at least 40 bytes of headers
    assert counts["up"] >= 500_000 + 346 * 40
    assert counts["down"] >= 40 * 2  # acknowledgements, though nearly nothing was said
    assert line.num_lost == {"up": 0, "down": 0}


def test_lost_packets_are_sent_again_and_counted(open_line: Open) -> None:
    line, counts = open_line(up=Conditions(loss=0.05))
    assert send(line, 500_000) == "500000"
    lost = line.num_lost["up"]
    # 0.05 of some 350 packets from a named stream; every lost packet of data was counted, and its repetition too
    assert 3 <= lost <= 60
    assert counts["up"] > 500_000 + 346 * 40 + (lost - 3) * 1000
    assert line.num_lost["down"] == 0


@pytest.mark.slow
def test_the_rate_is_kept(open_line: Open) -> None:
    line, _ = open_line(up=Conditions.parse("10mbit", "20ms"))
    began = monotonic()
    assert send(line, 250_000) == "250000"
    assert monotonic() - began >= 0.2 + 0.02  # 250,000 bytes take 0.2 s


@pytest.mark.slow
def test_a_cut_line_loses_everything(open_line: Open) -> None:
    line, _ = open_line()
    with line.door.call(lambda: socket.create_server((DOOR_ADDRESS, 0))) as server:
        line.cut()
        with pytest.raises(TimeoutError):
            line.node.call(lambda: socket.create_connection(server.getsockname(), 0.3))
        assert line.num_lost["up"] >= 1
        line.restore()
        line.node.call(lambda: socket.create_connection(server.getsockname(), 10)).close()
