"""A federation of real processes in which things go wrong on purpose, and what came of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.config.run_config import RunConfig
from fedreuse.deploy.flower.app_folder import PACKAGE, write_app
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import STATE_FILE
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.meter.metered import Metering, metered
from fedreuse.engine.executors.executor import Reply, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.ports import FORGOT
from fedreuse.engine.state.records import ClientRecord
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory

PATIENCE_SECONDS = 900.0
Plan = Mapping[int, Mapping[int, str]]
"""client -> round -> deed, as `chaos_client` understands them."""


def processes_of(federation: LocalFederation, client: int) -> Iterator[tuple[int, bytes]]:
    """Every process of a node, with its command."""
    mark = f"FLWR_HOME={federation.folder / f'node-{client}' / 'flower'}\0".encode()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                yield int(entry.name), (entry / "cmdline").read_bytes()


def signal_node(federation: LocalFederation, client: int, number: signal.Signals) -> None:
    """Every process of a node at once, as if its machine had stopped, gone on or died."""
    for process, _ in processes_of(federation, client):
        with suppress(OSError):
            os.kill(process, number)
    if number == signal.SIGKILL:
        federation.nodes[client].wait()


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong: to whom, in which round, and when it was no longer so (None: at that round's end)."""

    name: str
    client: int
    round_number: int
    cured: float | None = None
    happened: str = ""


@dataclass(frozen=True)
class Finding:
    """A line of the fault matrix."""

    fault: str
    happened: str
    rounds_lost: int
    seconds_to_recover: float


class Trial:
    """A metered federation with chaos clients, and a clock at the end of every round."""

    def __init__(self, folder: Path, config: RunConfig, plan: Plan, timeout_seconds: float) -> None:
        """Nothing runs yet."""
        self.folder, self.config, self.out = folder, config, folder / "run"
        self.options = Deployment(out=str(self.out), timeout_seconds=timeout_seconds, retries=1)
        self.federation = LocalFederation(folder / "federation", config.task.clients)
        self.ended: dict[int, float] = {}
        for client, deeds in plan.items():
            disk = self.federation.folder / f"node-{client}"
            disk.mkdir(parents=True, exist_ok=True)
            (disk / "chaos.json").write_text(json.dumps({str(number): deed for number, deed in deeds.items()}))

    def __enter__(self) -> Trial:
        """The federation starts, with a relay before every node."""
        with ExitStack() as stack:
            self.meter = stack.enter_context(metered(self.federation, Metering("relay")))
            stack.enter_context(self.federation)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Everything stops."""
        self._stack.close()

    def launch(self, **changes: Any) -> None:
        """Hand the app to the SuperLink; with changes of the deployment's options from the second time on."""
        options = replace(self.options, meter=str(self.meter.counters.path))
        app = write_app(self.config, options, self.folder / "app")
        shutil.copy(Path(__file__).with_name("chaos_client.py"), app / PACKAGE / "client.py")
        (self.out / STATE_FILE).unlink(missing_ok=True)
        self.federation.launch(app, {f"deploy.{key}": value for key, value in changes.items()})

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Until something is so; rounds that end meanwhile are timed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:g} s for: {what}\n{self.log()}"
            self.federation.check()
            self._time_rounds()
            time.sleep(0.1)
        self._time_rounds()

    def wait_for_round(self, number: int) -> None:
        """Until a round has ended."""
        self.wait(f"the end of round {number}", lambda: number in self._rounds() or self.state() == "failed")
        assert number in self.ended, f"the run failed before the end of round {number}\n{self.log()}"

    def wait_for_hold(self, client: int, number: int) -> None:
        """Until a client that holds has begun its work."""
        mark = self.federation.folder / f"node-{client}" / f"holding-{number}"
        self.wait(f"client {client} to hold in round {number}", mark.exists)

    def release(self, client: int, number: int) -> None:
        """A client that holds may go on, if it can."""
        (self.federation.folder / f"node-{client}" / f"holding-{number}").unlink()

    def wait_for_end(self, state: str = "finished") -> None:
        """Until the server app ends, well or not."""
        self.wait("the end of the run", lambda: self.state() in ("finished", "failed"))
        assert self.state() == state, self.log()

    def state(self) -> str:
        """What the server app says of itself."""
        return str(self._server()["state"])

    def kill_server(self) -> None:
        """The server app dies on the spot."""
        self.wait("the server app", lambda: self.state() == "running")
        os.kill(self._server()["process"], signal.SIGKILL)

    def worker_of(self, client: int) -> int:
        """The resident worker of a node, once there is one."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [
                number for number, command in processes_of(self.federation, client) if b"resident.worker" in command
            ]
            return bool(found)

        self.wait(f"the resident worker of client {client}", look)
        return found[0]

    def signal_node(self, client: int, number: signal.Signals) -> None:
        """Every process of a node at once, as if its machine had stopped, gone on or died."""
        signal_node(self.federation, client, number)

    def log(self) -> str:
        """What the run says."""
        path = self.out / "log.txt"
        return path.read_text() if path.exists() else ""

    def finding(self, fault: Fault) -> Finding:
        """What came of a fault, once the run has ended."""
        fates = {
            event.round_number: event.outcome
            for event in RunDirectory.open(self.out).events()
            if event.client == fault.client
        }
        back = next(
            number for number, fate in sorted(fates.items()) if number >= fault.round_number and fate == "fresh"
        )
        cured = fault.cured if fault.cured is not None else self.ended[fault.round_number]
        seconds = max(0.0, self.ended[back] - cured)
        return Finding(fault.name, fault.happened or self._happened(fault), back - fault.round_number, seconds)

    def simulated(self, wipes: Mapping[int, set[int]]) -> RunDirectory:
        """The same run in one process: the same replies lost, the same memories wiped (round -> clients)."""
        found = RunDirectory.open(self.out)
        forgot = {(row.round_number, row.client) for row in found.ledger() if row.kind == FORGOT}
        lost = [
            {"round": event.round_number, "client": event.client, "fate": "lost"}
            for event in found.events()
            if event.outcome == "lost" and (event.round_number, event.client) not in forgot
        ]
        plain = {**self.config.to_plain(), "faults": {"name": "listed", "entries": lost}}
        from fedreuse.config.run_config import load

        return run(load(plain), self.folder / "simulated", executor=Forgetful(wipes))

    def _happened(self, fault: Fault) -> str:
        own = [row for row in RunDirectory.open(self.out).ledger() if row.client == fault.client]
        if any(row.kind == FORGOT and row.round_number == fault.round_number for row in own):
            return "the client said so; both ends started over"
        pattern = re.compile(rf"round {fault.round_number}: .*\bclient {fault.client}\b(?: (refused:))? ?(.*)")
        said = [match[0].partition(": ")[2] for line in self.log().splitlines() if (match := pattern.search(line))]
        return said[0] if said else "nothing"

    def _server(self) -> dict[str, Any]:
        path = self.out / STATE_FILE
        return json.loads(path.read_text()) if path.exists() else {"state": "none"}

    def _rounds(self) -> list[int]:
        return [int(number) for number in re.findall(r"^round (\d+):.* fresh \d+ reused", self.log(), re.MULTILINE)]

    def _time_rounds(self) -> None:
        for number in self._rounds():
            self.ended.setdefault(number, time.monotonic())


@dataclass(frozen=True)
class Forgetful:
    """The serial executor, whose clients lose their memory before some rounds."""

    wipes: Mapping[int, set[int]]

    def start(self, site: Site) -> Any:
        """At work."""
        inner, wipes = Serial().start(site), self.wipes

        class Wiping:
            def __getattr__(self, name: str) -> Any:
                return getattr(inner, name)

            def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
                number = next(iter(requests.values())).round_number
                for client in wipes.get(number, ()):
                    site.store.save(client, ClientRecord())
                return inner.exchange(requests)

        return Wiping()


def matrix(findings: list[Finding]) -> str:
    """The fault matrix as a table."""
    lines = [
        "| fault | what happened | rounds lost for that client | data lost | seconds to recover |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.fault} | {one.happened} | {one.rounds_lost} | none | {one.seconds_to_recover:.0f} |"
        for one in findings
    ]
    return "\n".join(lines) + "\n"
