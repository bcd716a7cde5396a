"""Federation on this machine: one SuperLink and one SuperNode per client on loopback, always stopped at the end."""

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
    """Line between a node and the SuperLink, such as a relay or a network namespace."""

    def address(self, node: int) -> str:
        """Return the HOST:PORT under which a node reaches the SuperLink."""
        ...

    def command(self, node: int, command: Sequence[str]) -> list[str]:
        """Return the command that starts a node."""
        ...


class LocalFederation:
    """SuperLink and SuperNodes as child processes, in a `with` block; node k is client k, or the client it `claims`.

    All files are below `folder`: logs, Flower's home, the nodes' disks (`node-k/`). Processes start in the current
    folder, so that relative paths in a configuration mean the same as in a simulation; `homes` gives nodes working
    directories of their own, as on other machines. `homes`, `line`, `data` (folders of nodes, task at_home), `claims`,
    `settings` (more entries of every node config), `is_resident` and `is_guarded` may be set before it starts; with
    both False the programs are Flower's own, unmodified.

    Args:
        folder: Folder of all files.
        num_nodes: Number of nodes.
        authority: Certificates and keys; None for plain text on loopback.
    """

    def __init__(self, folder: Path, num_nodes: int, authority: Authority | None = None) -> None:
        """Choose a free port; nothing starts yet."""
        self.folder = folder.absolute()
        self.num_nodes = num_nodes
        self.authority = authority
        self.port = free_port()
        self.line: Line | None = None
        self.data: Mapping[int, Path] = {}
        self.claims: Mapping[int, int] = {}
        self.homes: Mapping[int, Path] = {}
        self.settings: Mapping[str, str | int | bool] = {}
        self.is_resident = self.is_guarded = True
        self.superlink: subprocess.Popen[bytes] | None = None
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._mark = token_hex(8)
        self._run = ""

    def __enter__(self) -> LocalFederation:
        """Start the SuperLink and all nodes."""
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
        """Stop all processes."""
        self.stop()

    @property
    def address(self) -> str:
        """HOST:PORT of the SuperLink."""
        return f"{LOOPBACK}:{self.port}"

    def start_node(self, node: int) -> None:
        """Start the SuperNode of a client, or start it again; one that still runs is killed."""
        if (old := self.nodes.pop(node, None)) is not None:
            old.kill()
            old.wait()
        disk = self.folder / f"node-{node}"
        disk.mkdir(parents=True, exist_ok=True)
        root, key = (None, None) if self.authority is None else (self.authority.root, self.authority.node_key(node))
        address = self.address if self.line is None else self.line.address(node)
        node_config: dict[str, str | int | bool] = {"store": str(disk / "store"), **self.settings}
        if key is not None:
            node_config["key-path"] = str(key)
        if key is None or node in self.claims:  # with keys the roster decides
            node_config["partition-id"] = self.claims.get(node, node)
        if node in self.data:
            node_config["data-path"] = str(self.data[node].absolute())
        resident = resident_folder(disk / "store") if self.is_resident else None
        command = supernode_command(address, free_port(), node_config, (root, key), resident, self.is_guarded)
        if self.line is not None:
            command = self.line.command(node, command)
        self.nodes[node] = self._start(command, f"node-{node}", disk / "flower", self.homes.get(node))

    def launch(self, app: Path, overrides: Mapping[str, Any] | None = None) -> None:
        """Submit an app to the SuperLink, which starts its server app."""
        changes = " ".join(f"{key}={_toml_value(value)}" for key, value in (overrides or {}).items())
        output = self.flower("run", str(app.absolute()), _CONNECTION, *(["--run-config", changes] if changes else []))
        self._run = "".join(re.findall(r"started run (\d+)", output)[:1])

    def has_ended(self) -> bool:
        """Return whether the app that was launched last has ended, successfully or not."""
        return "finished:" in self.flower("list", _CONNECTION, "--run-id", self._run, "--format", "json")

    def flower(self, *arguments: str) -> str:
        """Run a command of Flower against this SuperLink, and return its output.

        Raises:
            RunError: The command failed.
        """
        done = subprocess.run(
            ["flwr", *arguments],
            env=self._environment(self._home),
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        output = (done.stdout + done.stderr).strip()
        if done.returncode:
            raise RunError(f"flwr {arguments[0]} failed: {output[-2000:]}")
        return output

    def check(self) -> None:
        """Raise RunError if the SuperLink has ended; nodes may come and go."""
        if self.superlink is not None and self.superlink.poll() is not None:
            raise RunError(f"the SuperLink ended with {self.superlink.returncode}; see {self.folder / 'superlink.log'}")

    def stop(self) -> None:
        """Terminate all processes, and kill those that remain after 5 s."""
        started = [process for process in (*self.nodes.values(), self.superlink) if process is not None]
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)  # a stopped process does not react to SIGTERM
                process.terminate()
        deadline = time.monotonic() + 5
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        while left := list(self.processes()):  # an ending parent may start one more child
            for process_id in left:
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
            time.sleep(0.05)
        for process in started:
            process.wait()
        self.nodes, self.superlink = {}, None

    def processes(self) -> Iterator[int]:
        """Yield our live processes and their children in any session, found by a mark in their environment."""
        mark = f"{_MARK}={self._mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):  # it has ended, or belongs to another user; a zombie has no environment
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
        command = superlink_command(LOOPBACK, self.port, self.authority, self.is_guarded)
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
        """Start a process in its own session, so that Ctrl-C reaches only us and we stop it in order."""
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
    """Ask the kernel, in the child, for SIGTERM when we die: after SIGKILL we cannot stop it ourselves."""
    _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def free_port() -> int:
    """Return an unused port of loopback."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)
