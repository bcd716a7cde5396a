"""A meter in the lines of a federation: set before it starts, gone with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import Form, run_local
from fedreuse.deploy.meter.conditions import Conditions
from fedreuse.deploy.meter.metered import Metering, metered
from fedreuse.deploy.meter.transport_meter import TransportMeter
from fedreuse.runs.launch import run
from tests.deploy.lines import needs_namespaces
from tests.tiny import tiny


def test_nodes_are_led_through_the_meter(tmp_path: Path) -> None:
    federation = LocalFederation(tmp_path / "federation", 2)
    with metered(federation, Metering("relay", up=Conditions.parse("10mbit", loss="1%"))) as meter:
        assert federation.line is meter
        assert meter.address(0) != meter.address(1) != federation.address
        assert meter.command(0, ["flower-supernode"]) == ["flower-supernode"]
        told = meter.to_plain()
    assert federation.line is None
    assert (told["meter"], told["up"], told["down"]) == ("relay", "10mbit, 1%", "free")
    assert "loses no packets" in told["notes"][0]
    assert told["up_bytes (transport)"] == 0
    assert "up_bytes (interface)" not in told


@needs_namespaces
@pytest.mark.slow
@pytest.mark.deploy
def test_a_federation_behind_lossy_lines_gives_the_same_bits_and_more_bytes(tmp_path: Path) -> None:
    config = tiny(task={"clients": 2}, rounds={"count": 2, "cohort": 2})
    line = Conditions.parse("10mbit", "20ms", "3%")
    found = run_local(
        config, Deployment(out=str(tmp_path / "out")), form=Form(metering=Metering("namespace", line, line))
    )
    simulated = run(config, tmp_path / "simulated")
    assert found.model().keys() == simulated.model().keys()
    assert all(found.model()[name].tobytes() == array.tobytes() for name, array in simulated.model().items())
    crossed, envelopes = found.traffic(), simulated.traffic()["messages"]
    assert crossed["messages"].up.tolist() == envelopes.up.tolist()
    assert all(crossed["interface"].up > crossed["transport"].up)
    assert all(crossed["transport"].up > crossed["messages"].up)
    assert all(crossed["transport"].down > crossed["messages"].down)
    told = json.loads((tmp_path / "out" / "meter.json").read_text())
    assert told["meter"] == "namespace"
    assert told["lost_packets"]["up"] > 0
    assert told["up_bytes (transport)"] > crossed["transport"].up.sum()  # joining and hello belong to no exchange


def test_every_node_can_have_its_own_line(tmp_path: Path) -> None:
    lines = [Conditions.parse(rate) for rate in ("1mbit", "5mbit")]
    with metered(LocalFederation(tmp_path, 2), Metering("relay", lines, lines)) as meter:
        assert meter.to_plain()["up"] == "1mbit; 5mbit"
    with pytest.raises(ConfigError, match=r"^conditions of 3 lines expected, one per node, got 2"):
        TransportMeter("relay", ("127.0.0.1", 1), 3, tmp_path / "counters", up=lines)
