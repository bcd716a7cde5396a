"""Ray over several hosts: a study on a cluster of isolated hosts, with a host cut off and the head restarted.

python -m benchmarks.hosts [--hosts 2 4] [--case whole cut restarted] [--out docs/bench/hosts.json]

A host is a network namespace with an address and a line of 100 Mbit/s to a switch, and has its own processes, /tmp and
shared memory, so that the commands of docs/how-to/cluster.md run in it as they do on a machine. All hosts use the cores
of this machine: times are not those of a real cluster, bytes and bits are. Needs Linux, root, `ip` and `tc`.

whole      the study runs to its end; the bytes on every line are those of the kernel's counters
cut        the line of the last host is cut in the middle of a run
restarted  the first host, with Ray's head and the study itself, is killed in the middle of a run; all hosts are started
           again, and the same command continues

Every case compares models, ledgers and metrics of all runs with those of the serial executor, which must be equal. Rows
of other cases that are in the file stay; those with `sent: every host` were measured before requests to one client went
to its host alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from pyarrow import parquet

from fedreuse.deploy.meter.namespaces import Namespace, why_not
from fedreuse.lab.bench.results import made_now, read
from fedreuse.report.results import read_runs

__all__ = ["Cluster", "Host", "main", "played", "study"]

CASES = ("whole", "cut", "restarted")
_RATE = "100mbit"
_SECONDS = 900.0
_STARTED = "Ray runtime started"
_BIN = Path(sys.executable).parent


def study(rounds: int = 8, clients: int = 24, cohort: int = 12) -> dict[str, Any]:
    """Return the study: dense FedAvg, and lean, whose requests differ by client."""
    base = {
        "task": {"name": "digits", "clients": clients},
        "network": {"name": "mlp", "hidden": [512, 256]},
        "local": {"epochs": 1, "batch": 32, "optimizer": {"name": "sgd", "lr": 0.05}},
        "rounds": {"count": rounds, "cohort": cohort, "evaluate_every": rounds},
        "seed": 101,
    }
    methods = {"dense": {"method": "fedavg"}, "lean": {"method": {"name": "lean", "budget": 0.05}}}
    return {"base": base, "axes": {"method": methods}}


@dataclass
class Host:
    """A machine of its own, as far as network, processes, /tmp and shared memory go."""

    number: int
    network: Namespace
    disk: Path
    _outer: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _pid: int = 0

    @property
    def address(self) -> str:
        """Address of the host."""
        return f"10.80.0.{self.number}"

    def power_on(self) -> None:
        """Start the first process of the host, which all others end with."""
        shutil.rmtree(self.disk / "ray", ignore_errors=True)
        inside = f"mount --bind {self.disk} /tmp && mount -t tmpfs tmpfs /dev/shm && echo ready && exec cat"
        isolated = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-c", inside]
        self._outer = subprocess.Popen(
            self.network.command(isolated),
            stdin=subprocess.PIPE,  # its end, also that of this process, ends the host
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._outer.stdout is not None
        assert self._outer.stdout.readline() == b"ready\n", "the host did not start"
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text().split()
        self._pid = int(children[0])

    def power_off(self) -> None:
        """Kill every process of the host at once; its disk stays."""
        if self._outer is not None:
            os.kill(self._pid, signal.SIGKILL)
            self._outer.wait()
            for pipe in (self._outer.stdin, self._outer.stdout):
                assert pipe is not None
                pipe.close()
            self._outer = None

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command in the host."""
        settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "OMP_NUM_THREADS": "1",
                    # it watches the memory of this whole machine, and would kill actors for what others use
                    "RAY_memory_monitor_refresh_ms": "0", "RAY_raylet_start_wait_time_s": "300"}  # fmt: skip
        entered = ["nsenter", "-t", str(self._pid), "-n", "-p", "-m", "--wdns=/tmp", "--", *command]
        return subprocess.Popen(
            entered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PATH": f"{_BIN}:{os.environ['PATH']}", "HOME": "/tmp", "TMPDIR": "/tmp", **settings},
        )  # fmt: skip

    def run(self, *command: str) -> str:
        """Run a command in the host to its end; return what it prints."""
        process = self.start(*command)
        out, _ = process.communicate(timeout=_SECONDS)
        if process.returncode:
            raise RuntimeError(f"host {self.number}: {' '.join(command)}: {out}")
        return out


@dataclass
class Cluster:
    """Hosts at one switch; the first is Ray's head."""

    hosts: list[Host]
    switch: Namespace

    def start_ray(self) -> None:
        """Start Ray as docs/how-to/cluster.md says, with one CPU for each host."""
        share = ["--num-cpus=1", f"--object-store-memory={200 * 2**20}", "--disable-usage-stats"]
        first, *others = self.hosts
        assert _STARTED in first.run("ray", "start", "--head", "--port=6379", "--include-dashboard=false", *share)
        for host in others:
            assert _STARTED in host.run("ray", "start", f"--address={first.address}:6379", *share)

    def cut(self, host: Host) -> None:
        """Pull the cable of a host."""
        _do(self.switch, f"ip link set h{host.number} down")

    def bytes_received(self) -> dict[str, int]:
        """Return the bytes that each host received from the switch so far, by its address."""
        return {host.address: host.network.statistics("eth0")["rx_bytes"] for host in self.hosts}


@contextmanager
def cluster(count: int, folder: Path) -> Iterator[Cluster]:
    """Make the switch, the lines and the hosts; everything ends with the context, or with this process."""
    with ExitStack() as stack:
        switch = Namespace()
        stack.callback(switch.close)
        _do(switch, "ip link add br0 type bridge", "ip link set br0 up")
        hosts = []
        limit = f"root tbf rate {_RATE} burst 128kb latency 100ms"
        for number in range(1, count + 1):
            network = Namespace()
            stack.callback(network.close)
            host = Host(number, network, folder / f"host{number}")
            host.disk.mkdir()
            line = f"h{number}"
            _do(switch, f"ip link add {line} type veth peer name eth0 netns {network.path}",
                f"ip link set {line} master br0 up", f"tc qdisc add dev {line} {limit}")  # fmt: skip
            _do(network, f"ip addr add {host.address}/24 dev eth0", "ip link set eth0 up",
                f"tc qdisc add dev eth0 {limit}", "ip route add default dev eth0")  # fmt: skip
            host.power_on()
            stack.callback(host.power_off)
            hosts.append(host)
        yield Cluster(hosts, switch)


def _do(network: Namespace, *commands: str) -> None:
    for command in commands:
        subprocess.run(network.command(command.split()), check=True, capture_output=True)


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of model, ledger, events and scores of every complete run in a folder, by its variant.

    Times are left out: they differ from run to run.
    """
    found = {}
    for result in read_runs(folder):
        place = result.directory
        digest = sha256((place / "model.safetensors").read_bytes())
        ledger = parquet.read_table(place / "ledger.parquet").drop_columns(["work"])
        digest.update(repr((ledger.to_pylist(), parquet.read_table(place / "events.parquet").to_pylist())).encode())
        for line in (place / "metrics.jsonl").read_text().splitlines():
            digest.update(repr({**json.loads(line), "seconds": None}).encode())
        if result.is_complete:
            found[result.variant] = digest.hexdigest()
    return found


def requested(folder: Path) -> int:
    """Return the bytes of all requests to clients in a folder of runs, as the ledgers count them."""
    tables = [
        parquet.read_table(file, columns=["direction", "total_bytes"]) for file in folder.glob("*/ledger.parquet")
    ]
    rows = [row for table in tables for row in table.to_pylist()]
    return sum(row["total_bytes"] for row in rows if row["direction"] == "down")


def _committed(folder: Path) -> int:
    """Return the number of rounds that runs in a folder have stored."""
    return sum(len(file.read_bytes().splitlines()) for file in folder.glob("*/metrics.jsonl"))


def played(case: str, count: int, plain: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the study on hosts with the faults of a case.

    Args:
        case: `whole`, `cut` or `restarted`.
        count: Number of hosts, at least 2.
        plain: The study.
        folder: Empty folder.

    Returns:
        Seconds, bytes received by each host, digests of the runs, and lines of their logs about lost workers.
    """
    with cluster(count, folder) as made:
        first = made.hosts[0]
        (first.disk / "study.yaml").write_text(yaml.safe_dump(plain))
        made.start_ray()
        before, began = made.bytes_received(), time.perf_counter()
        command = ("fedreuse", "compare", "study.yaml", "executor={name: ray, address: auto}", "--out", "runs")
        runs = first.disk / "runs"
        process = first.start(*command)
        if case != "whole":
            half = plain["base"]["rounds"]["count"] // 2
            _wait(lambda: _committed(runs) >= half, process)
            if case == "cut":
                made.cut(made.hosts[-1])
            else:
                for host in made.hosts:  # the others would wait a minute for the head before they end
                    host.power_off()
                process.communicate()
                for host in made.hosts:
                    host.power_on()
                made.start_ray()
                process = first.start(*command)
        said, _ = process.communicate(timeout=_SECONDS)
        if process.returncode:
            raise RuntimeError(said)
        seconds = time.perf_counter() - began
        after = made.bytes_received()
        lost = [line for log in runs.glob("*/log.txt") for line in log.read_text().splitlines() if "repeats it" in line]
        return {
            "seconds": round(seconds, 1),
            "received": {host: after[host] - before[host] for host in after},
            "requests": requested(runs),
            "digests": digests(runs),
            "lost": lost,
        }


def _wait(is_true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(round(_SECONDS / 0.1)):
        if is_true():
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    out, _ = process.communicate()
    raise RuntimeError(f"the study ended before the fault:\n{out}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases, compare them with the serial executor, and store the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts", description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--case", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if reason := why_not():
        parser.error(reason)
    plain, rows = study(options.rounds), []
    with TemporaryDirectory(prefix="hosts-") as made:
        folder = Path(made)
        (folder / "study.yaml").write_text(yaml.safe_dump(plain))
        serial = [str(_BIN / "fedreuse"), "compare", "study.yaml", "executor=serial", "--out", "serial"]
        subprocess.run(serial, cwd=folder, check=True, capture_output=True)
        expected = digests(folder / "serial")
        for count in options.hosts:
            for case in options.case:
                place = folder / f"{case}{count}"
                place.mkdir()
                row = played(case, count, plain, place)
                is_equal = row.pop("digests") == expected
                rows.append({"hosts": count, "case": case, "sent": "its host", "equal": is_equal, **row})
                print(rows[-1], flush=True)  # noqa: T201
    if options.out is not None:
        known = read(options.out).rows if options.out.exists() else []
        done = [(row["hosts"], row["case"], row["sent"]) for row in rows]
        rows += [dict(row) for row in known if (row["hosts"], row["case"], row["sent"]) not in done]
        rows.sort(key=lambda row: (row["hosts"], CASES.index(row["case"]), row["sent"]))
        made_now("hosts", {"rate": _RATE, "rounds": options.rounds}, rows).write(options.out)


if __name__ == "__main__":
    main()
