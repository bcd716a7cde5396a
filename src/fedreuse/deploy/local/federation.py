"""A federation on this machine: one SuperLink and one SuperNode per client on loopback, stopped whatever happens."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

from fedreuse.core.errors import RunError
from fedreuse.deploy.flower.commands import (
    LOOPBACK,
    environment,
    resident_folder,
    superlink_command,
    supernode_command,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

    from fedreuse.deploy.flower.authority import Authority

__all__ = ["Line", "LocalFederation", "free_port"]

_MARK = "FEDREUSE_FEDERATION"
_CONNECTION = "local"
_LIBC = ctypes.CDLL(None)
_SET_PARENT_DEATH_SIGNAL = 1


class Line(Protocol):
    """What may stand between a node and the SuperLink: a relay, a network namespace."""

    def address(self, node: int) -> str:
        """Where the node finds the SuperLink."""
        ...

    def command(self, node: int, command: Sequence[str]) -> list[str]:
        """How the node is started."""
        ...


class LocalFederation:
    """SuperLink and SuperNodes as processes of ours. Use it as a context; node k plays client k, or what it `claims`.

    Everything it writes lies below `folder`: logs, Flower's home, the nodes' own disks (`node-k/`). Processes start
    where we are, so that relative paths in a configuration mean what they mean in a simulation; nodes with folders of
    their own for that (`homes`) are as on machines of their own. These, a `line`, the `data` that nodes have at home,
    and whether they have a resident worker, may be set before it starts.
    """

    def __init__(self, folder: Path, num_nodes: int, authority: Authority | None = None) -> None:
        """Nothing starts yet; with an authority everything is encrypted and every node proves who it is."""
        self.folder = folder.absolute()
        self.num_nodes = num_nodes
        self.authority = authority
        self.port = free_port()
        self.line: Line | None = None
        self.data: Mapping[int, Path] = {}
        self.claims: Mapping[int, int] = {}
        self.homes: Mapping[int, Path] = {}
        self.is_resident = True
        self.superlink: subprocess.Popen[bytes] | None = None
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._mark = token_hex(8)
        self._run = ""

    def __enter__(self) -> LocalFederation:
        """Start everything."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start_superlink()
            for node in range(self.num_nodes):
                if self.authority is not None:
                    self.flower("supernode", "register", str(self.authority.node_public_key(node)), _CONNECTION)
                self.start_node(node)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop everything."""
        self.stop()

    @property
    def address(self) -> str:
        """Where the SuperLink listens."""
        return f"{LOOPBACK}:{self.port}"

    def start_node(self, node: int) -> None:
        """Start the SuperNode of a client, or start it again."""
        disk = self.folder / f"node-{node}"
        disk.mkdir(parents=True, exist_ok=True)
        root, key = (None, None) if self.authority is None else (self.authority.root, self.authority.node_key(node))
        address = self.address if self.line is None else self.line.address(node)
        told: dict[str, str | int | bool] = {"store": str(disk / "store")}
        told |= {} if key is None else {"key-path": str(key)}
        if key is None or node in self.claims:
            told["partition-id"] = self.claims.get(node, node)
        if node in self.data:
            told["data-path"] = str(self.data[node].absolute())
        resident = resident_folder(disk / "store") if self.is_resident else None
        command = supernode_command(address, free_port(), told, (root, key), resident)
        if self.line is not None:
            command = self.line.command(node, command)
        self.nodes[node] = self._start(command, f"node-{node}", disk / "flower", self.homes.get(node))

    def launch(self, app: Path, overrides: Mapping[str, Any] | None = None) -> None:
        """Hand an app to the SuperLink, which starts its server app."""
        changes = " ".join(f"{key}={_toml_value(value)}" for key, value in (overrides or {}).items())
        told = self.flower("run", str(app.absolute()), _CONNECTION, *(["--run-config", changes] if changes else []))
        self._run = "".join(re.findall(r"started run (\d+)", told)[:1])

    def has_ended(self) -> bool:
        """Whether the app that was launched last has ended, in whatever way."""
        return "finished:" in self.flower("list", _CONNECTION, "--run-id", self._run, "--format", "json")

    def flower(self, *arguments: str) -> str:
        """Call Flower's command line, which talks to our SuperLink."""
        done = subprocess.run(
            ["flwr", *arguments],
            env=self._environment(self._home),
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        told = (done.stdout + done.stderr).strip()
        if done.returncode:
            raise RunError(f"flwr {arguments[0]} failed: {told[-2000:]}")
        return told

    def check(self) -> None:
        """The SuperLink must be alive; nodes may come and go."""
        if self.superlink is not None and self.superlink.poll() is not None:
            raise RunError(f"the SuperLink ended with {self.superlink.returncode}; see {self.folder / 'superlink.log'}")

    def stop(self) -> None:
        """Ask everything that was started to end, then make it."""
        started = [process for process in (*self.nodes.values(), self.superlink) if process is not None]
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        deadline = time.monotonic() + 5
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        while left := list(self.processes()):  # a dying parent may start one more child
            for process_id in left:
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
            time.sleep(0.05)
        for process in started:
            process.wait()
        self.nodes, self.superlink = {}, None

    def processes(self) -> Iterator[int]:
        """Processes that bear our mark and live: what we started, and their children, whatever session they are in."""
        mark = f"{_MARK}={self._mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):  # it ended, or is somebody else's; a dead one has no environment
                    if mark in (entry / "environ").read_bytes():
                        yield int(entry.name)

    @property
    def _home(self) -> Path:
        return self.folder / "flower"

    def _environment(self, home: Path) -> dict[str, str]:
        return {**environment(home), _MARK: self._mark}

    def _start_superlink(self) -> None:
        self._home.mkdir(exist_ok=True)
        (self._home / "config.toml").write_text(self._connection())
        command = superlink_command(LOOPBACK, self.port, self.authority)
        self.superlink = self._start(command, "superlink", self._home)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            self.check()
            with suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=1):
                return
            time.sleep(0.1)
        raise RunError(f"the SuperLink did not start within 120 s; see {self.folder / 'superlink.log'}")

    def _connection(self) -> str:
        security = "insecure = true" if self.authority is None else f'root-certificates = "{self.authority.root}"'
        return (
            f'[superlink]\ndefault = "{_CONNECTION}"\n\n'
            f'[superlink.{_CONNECTION}]\naddress = "{self.address}"\n{security}\n'
        )

    def _start(self, command: list[str], name: str, home: Path, where: Path | None = None) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that Ctrl-C reaches us alone and we stop it in order."""
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                env=self._environment(home),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                cwd=where,
            )


def _end_with_parent() -> None:
    """In the child: if we are killed and cannot stop it in order, the system asks it to end."""
    _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def free_port() -> int:
    """A port that nobody uses right now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)
