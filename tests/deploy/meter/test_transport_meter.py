"""The meter: a line per node, counted apart, read by the ledger; what it cannot do it says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fedreuse.accounting.ledger import Ledger, Measured
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError
from fedreuse.deploy.meter import transport_meter
from fedreuse.deploy.meter.conditions import Conditions
from fedreuse.deploy.meter.counters import MeterReader
from fedreuse.deploy.meter.transport_meter import TransportMeter
from tests.deploy.lines import counting_server, needs_namespaces, sending_command


def talk(meter: TransportMeter, node: int, num_bytes: int) -> None:
    host, _, port = meter.address(node).rpartition(":")
    command = meter.command(node, sending_command((host, int(port)), num_bytes))
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert int(said) == num_bytes


@pytest.mark.slow
def test_nodes_are_counted_apart_and_since_the_last_look(tmp_path: Path) -> None:
    with counting_server() as server:
        meter = TransportMeter("relay", server, 2, tmp_path / "counters")
        try:
            talk(meter, 1, 999)  # before the reader came
            read = MeterReader(tmp_path / "counters")
            talk(meter, 0, 5000)
            talk(meter, 0, 70)
            assert list(read()) == [
                Measured(0, "up", {"transport": 5070}),
                Measured(0, "down", {"transport": 40}),
                Measured(1, "up", {"transport": 0}),
                Measured(1, "down", {"transport": 0}),
            ]
            talk(meter, 1, 1)
            assert [measured.seen["transport"] for measured in read()] == [0, 0, 1, 20]
        finally:
            meter.close()
    assert meter.notes == []


def test_the_ledger_asks_once_per_exchange(tmp_path: Path) -> None:
    with counting_server() as server:
        meter = TransportMeter("relay", server, 1, tmp_path / "counters")
        try:
            ledger = Ledger(meter=MeterReader(tmp_path / "counters"))
            talk(meter, 0, 100)
            ledger.note({0: Envelope("train", 3, 7)}, [], {})
            ledger.note({}, [], {})  # nobody was asked: no exchange
        finally:
            meter.close()
    asked, up, down = ledger.rows
    assert not asked.is_measured
    assert (up.round_number, up.exchange, up.client, up.direction, up.fields) == (3, 7, 0, "up", {"transport": 100})
    assert (down.direction, down.fields, down.total_bytes) == ("down", {"transport": 20}, 0)


@pytest.mark.slow
@needs_namespaces
def test_a_namespace_counts_payload_and_packets(tmp_path: Path) -> None:
    with counting_server() as server:
        meter = TransportMeter("namespace", server, 2, tmp_path / "counters", up=Conditions(loss=0.02))
        try:
            assert meter.kind == "namespace"
            talk(meter, 0, 100_000)
            talk(meter, 1, 200_000)
            assert meter.counters.read(0, "up")["transport"] == 100_000
            assert meter.counters.read(1, "up")["transport"] == 200_000
            assert meter.counters.read(1, "up")["interface"] > 200_000 + 200_000 // 1448 * 40
            assert meter.num_lost["down"] == 0
        finally:
            meter.close()
    assert meter.notes == []


def test_without_namespaces_a_relay_stands_in_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_meter, "why_not", lambda: "not allowed")
    with counting_server() as server:
        meter = TransportMeter("namespace", server, 1, tmp_path / "counters", up=Conditions(loss=0.01))
        meter.close()
    assert meter.kind == "relay"
    assert "not allowed" in meter.notes[0]
    assert "loses no packets" in meter.notes[1]
    assert meter.counters.read(0, "up") == {"transport": 0}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["relay", pytest.param("namespace", marks=needs_namespaces)])
def test_a_cable_can_be_pulled(tmp_path: Path, kind: transport_meter.MeterKind) -> None:
    with counting_server() as server:
        meter = TransportMeter(kind, server, 1, tmp_path / "counters")
        try:
            meter.cut(0)
            host, _, port = meter.address(0).rpartition(":")
            command = meter.command(0, sending_command((host, int(port)), 10))
            with pytest.raises(subprocess.TimeoutExpired):
                subprocess.run(command, capture_output=True, timeout=0.7, check=False)
            meter.restore(0)
            talk(meter, 0, 10)
        finally:
            meter.close()


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="relay or namespace"):
        TransportMeter("radio", ("127.0.0.1", 1), 1, tmp_path / "counters")  # type: ignore[arg-type]
