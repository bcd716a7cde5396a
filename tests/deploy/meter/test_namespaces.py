"""Network namespaces: a world of their own, gone with the process that made them."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from fedreuse.deploy.meter import namespaces
from fedreuse.deploy.meter.namespaces import Namespace, why_not
from tests.deploy.lines import needs_namespaces


def test_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forbidding:
        @staticmethod
        def unshare(_flags: int) -> int:
            return -1

    monkeypatch.setattr(namespaces, "_libc", Forbidding)
    assert "network namespaces cannot be made here" in str(why_not())


@needs_namespaces
def test_only_loopback_is_there_and_it_works() -> None:
    namespace = Namespace()
    try:
        assert namespace.call(socket.if_nameindex)[0][1] == "lo"
        inside = namespace.call(lambda: socket.create_server(("127.0.0.1", 0)))
        port = inside.getsockname()[1]
        namespace.call(lambda: socket.create_connection(("127.0.0.1", port), 5)).close()
        with pytest.raises(OSError, match="unreachable"):
            namespace.call(lambda: socket.create_connection(("192.0.2.1", 80), 5))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)  # this process stays outside
        inside.close()
    finally:
        namespace.close()


@needs_namespaces
def test_a_command_runs_inside() -> None:
    namespace = Namespace()
    descriptor = namespace.interface("door0", "10.77.0.1")
    try:
        shown = subprocess.run(
            namespace.command(["cat", "/proc/net/dev"]), capture_output=True, text=True, check=True
        ).stdout
        assert "door0" in shown
        assert namespace.statistics("door0") == {"rx_bytes": 0, "rx_packets": 0, "tx_bytes": 0, "tx_packets": 0}
    finally:
        os.close(descriptor)
        namespace.close()
        namespace.close()
