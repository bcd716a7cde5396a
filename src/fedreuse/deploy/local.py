"""A federation on this machine: one SuperLink and one SuperNode per client on loopback, stopped whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from fedreuse.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

__all__ = ["OFFLINE", "LocalFederation", "free_port"]

LOOPBACK = "127.0.0.1"
OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
"""Without these three every Flower process looks up outside hosts, or installs packages."""
_MARK = "FEDREUSE_FEDERATION"
_CONNECTION = "local"


class LocalFederation:
    """SuperLink and SuperNodes as processes of ours. Use it as a context; node k plays client k.

    Everything it writes lies below `folder`: logs, Flower's home, the nodes' own disks (`node-k/`).
    """

    def __init__(self, folder: Path, num_nodes: int) -> None:
        """Nothing starts yet."""
        self.folder = folder.absolute()
        self.num_nodes = num_nodes
        self.port = free_port()
        self.superlink: subprocess.Popen[bytes] | None = None
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._mark = token_hex(8)

    def __enter__(self) -> LocalFederation:
        """Start everything."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start_superlink()
            for node in range(self.num_nodes):
                self.start_node(node)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop everything."""
        self.stop()

    @property
    def environment(self) -> dict[str, str]:
        """What every process of the federation is given: no look outside, our Python first, a home of its own."""
        here = str(Path(sys.executable).parent)
        path = os.pathsep.join([here, os.environ.get("PATH", "")])
        home = str(self.folder / "flower")
        return {**os.environ, **OFFLINE, "PATH": path, "FLWR_HOME": home, _MARK: self._mark}

    def start_node(self, node: int) -> None:
        """Start the SuperNode of a client, or start it again."""
        disk = self.folder / f"node-{node}"
        disk.mkdir(parents=True, exist_ok=True)
        command = [
            "flower-supernode", *self._node_security(node), "--superlink", self.node_address(node),
            "--host", LOOPBACK, "--port", str(free_port()),
            "--node-config", f'partition-id={node} num-partitions={self.num_nodes} store="{disk / "store"}"',
        ]  # fmt: skip
        home = {"FLWR_HOME": str(disk / "flower")}
        self.nodes[node] = self._start(self.node_command(node, command), f"node-{node}", home)

    def node_address(self, node: int) -> str:
        """Where a node finds the SuperLink; a meter puts its relay here."""
        del node
        return f"{LOOPBACK}:{self.port}"

    def node_command(self, node: int, command: list[str]) -> list[str]:
        """How a node is started; a meter puts a network namespace before it."""
        del node
        return command

    def launch(self, app: Path, overrides: Mapping[str, Any] | None = None) -> None:
        """Hand an app to the SuperLink, which starts its server app."""
        command = ["flwr", "run", str(app), _CONNECTION]
        if overrides:
            command += ["--run-config", " ".join(f"{key}={_toml_value(value)}" for key, value in overrides.items())]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, cwd=self.folder, timeout=120
        )
        if done.returncode:
            raise RunError(f"flwr run failed: {(done.stdout + done.stderr).strip()[-2000:]}")

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
        for left in self._ours():
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        for process in started:
            process.wait()
        self.nodes, self.superlink = {}, None

    def _start_superlink(self) -> None:
        home = self.folder / "flower"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(self._connection())
        command = [
            "flower-superlink", *self._superlink_security(), "--host", LOOPBACK, "--port", str(self.port),
            "--disable-runtime-dependency-installation",
        ]  # fmt: skip
        self.superlink = self._start(command, "superlink", {})
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.check()
            with suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=1):
                return
            time.sleep(0.1)
        raise RunError(f"the SuperLink did not start within 60 s; see {self.folder / 'superlink.log'}")

    def _connection(self) -> str:
        lines = [f'address = "{LOOPBACK}:{self.port}"', "insecure = true"]
        return f'[superlink]\ndefault = "{_CONNECTION}"\n\n[superlink.{_CONNECTION}]\n' + "\n".join(lines) + "\n"

    def _superlink_security(self) -> list[str]:
        return ["--insecure"]

    def _node_security(self, node: int) -> list[str]:
        del node
        return ["--insecure"]

    def _start(self, command: list[str], name: str, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that Ctrl-C reaches us alone and we stop it in order."""
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                env={**self.environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.folder,
            )

    def _ours(self) -> Iterator[int]:
        """Processes that bear our mark: children of what we started, whatever session they moved to."""
        mark = f"{_MARK}={self._mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if mark in (entry / "environ").read_bytes():
                        yield int(entry.name)


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
