"""A whole deployment talks to its own addresses alone: audited by the kernel, in a network with nothing but loopback.

In a new network namespace that has a loopback device and no route, whoever tries to reach anything else is counted by
the kernel as a packet without a route, whatever the library; whoever asks for a name is counted as a UDP datagram.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.tiny import plain

SCRIPT = """
import json, socket, subprocess, sys
from pathlib import Path

def counts():
    lines = Path("/proc/net/snmp").read_text().splitlines()
    found = {}
    for names, values in zip(lines[::2], lines[1::2]):
        kind = names.split(":")[0]
        found.update({kind + name: int(value) for name, value in zip(names.split()[1:], values.split()[1:])})
    six = dict(line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
    return {
        "no route": found["IpOutNoRoutes"] + int(six["Ip6OutNoRoutes"]),
        "datagrams": found["UdpOutDatagrams"] + int(six["Udp6OutDatagrams"]),
        "connections": found["TcpActiveOpens"],
    }

def outside():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.connect(("192.0.2.1", 53))
            except OSError:
                pass

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
fresh = counts()
outside()
tried = counts()
command = [sys.executable, "-c", "from fedreuse.cli import main; main()", "deploy", *sys.argv[1:]]
done = subprocess.run(command, capture_output=True, text=True)
print(json.dumps({"fresh": fresh, "tried": tried, "after": counts(), "code": done.returncode, "error": done.stderr}))
"""


@pytest.mark.slow
def test_nothing_but_loopback_is_ever_reached_for(tmp_path: Path) -> None:
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    try:
        subprocess.run([*unshare, "ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a network namespace cannot be made here, so nothing was audited: {error}")
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(plain(task={"clients": 2}, rounds={"count": 1, "cohort": 2})))
    words = [str(config), "--local", "2", "--tls", "--out", str(tmp_path / "out")]
    done = subprocess.run([*unshare, sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["code"] == 0, told["error"]
    assert (tmp_path / "out" / "COMPLETE").exists()
    assert told["tried"]["no route"] == told["fresh"]["no route"] + 2  # the counter does count
    assert told["after"]["no route"] == told["tried"]["no route"]
    assert told["after"]["datagrams"] == told["tried"]["datagrams"]
    assert told["after"]["connections"] > told["tried"]["connections"]
