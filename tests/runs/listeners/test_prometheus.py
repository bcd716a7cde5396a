"""Metrics of a run on loopback: read while it runs, and equal to its ledger."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener
from fedreuse.runs.launch import run
from fedreuse.runs.listeners.prometheus import Prometheus
from tests.tiny import tiny


class Scraper(Listener):
    """Reads the page after each round, as Prometheus does."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.pages: list[str] = []

    def round_done(self, event: RoundDone) -> None:
        with urllib.request.urlopen(f"{self.address}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            self.pages.append(answer.read().decode())
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{self.address}/other")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_metrics_follow_the_run(tmp_path: Path) -> None:
    port = free_port()
    scraper = Scraper(port)
    directory = run(tiny(listeners=[{"name": "prometheus", "port": port}]), tmp_path / "run", listeners=[scraper])
    last = scraper.pages[-1]
    assert re.fullmatch(r"(# (HELP|TYPE) .+\n|fedreuse_\w+(\{.*\})? [\d.e+-]+\n)+", last)
    rounds = [int(re.findall(r"^fedreuse_rounds_total (\d+)$", page, re.MULTILINE)[0]) for page in scraper.pages]
    assert rounds == list(range(len(directory.metrics())))  # it is called before the configured listeners
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    assert directory.is_complete


def test_a_used_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"prometheus cannot listen on port {port}"):
            Prometheus(port).start()
    with pytest.raises(ConfigError, match="port must be from 0 to 65535"):
        Prometheus(70000)
