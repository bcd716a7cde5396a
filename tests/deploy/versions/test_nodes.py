"""A compressed app on the SuperLink and two SuperNodes of the installed version of Flower, unmodified."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

from fedreuse.deploy.flower.commands import environment
from fedreuse.deploy.local.federation import free_port

INSTALLED = Version(version("flwr"))
HAS_CONFIG = Version("1.26") <= INSTALLED
"""Addresses of SuperLinks in FLWR_HOME, and no longer in the app."""
APP = Path(__file__).parents[1] / "steps_app"
PATIENCE_SECONDS = 600.0


@contextmanager
def running(command: Sequence[str], folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program with a FLWR_HOME of its own until the end of the block."""
    home = folder / name
    home.mkdir(exist_ok=True)
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(home), stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def options_of(program: str, folder: Path) -> str:
    """Return the help of a program: addresses of APIs became one host and port, one after the other."""
    return subprocess.run(
        [program, "--help"], env=environment(folder), capture_output=True, text=True, check=True
    ).stdout


def has_address(api: str, known: str) -> bool:
    """Return whether an API has an address of its own; 1.41 still takes the option and ignores it."""
    told = " ".join(known.rpartition(f"--{api}-api-address")[2].split()[1:3])
    return f"--{api}-api-address" in known and not told.startswith("Deprecated")


def submit(folder: Path, control: int, superlink: subprocess.Popen[bytes]) -> None:
    app, text = shutil.copytree(APP, folder / "app"), f'address = "127.0.0.1:{control}"\ninsecure = true\n'
    home = folder / "flwr"
    home.mkdir()
    if HAS_CONFIG:
        (home / "config.toml").write_text(f'[superlink]\ndefault = "local"\n\n[superlink.local]\n{text}')
    else:
        with (app / "pyproject.toml").open("a") as file:
            file.write(f'\n[tool.flwr.federations]\ndefault = "local"\n\n[tool.flwr.federations.local]\n{text}')
    command = ["flwr", "run", str(app), "local", "--run-config", f"folder='{folder}' rounds=3 nodes=2"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (done := subprocess.run(command, env=environment(home), capture_output=True, text=True)).returncode:
        assert superlink.poll() is None, (folder / "superlink.log").read_text()[-5000:]
        assert time.monotonic() < deadline, done.stdout + done.stderr  # the SuperLink is not up yet
        time.sleep(2)


@pytest.mark.slow
@pytest.mark.deploy
def test_a_compressed_app_on_nodes(tmp_path: Path) -> None:
    ports = {api: free_port() for api in ("fleet", "control", "serverappio", "host")}
    known, superlink = options_of("flower-superlink", tmp_path), ["flower-superlink", "--insecure"]
    has_port = "  --port PORT" in known  # first for tasks, with 1.37 for `flwr`, with 1.41 for nodes, too
    for api in ("fleet", "control", "serverappio"):
        if has_address(api, known) and (api == "fleet" or not has_port):
            superlink += [f"--{api}-api-address", f"127.0.0.1:{ports[api]}"]
        else:
            ports[api] = ports["host"]
    superlink += ["--host", "127.0.0.1", "--port", str(ports["host"])] if has_port else []
    has_own = "--clientappio-api-address" in options_of("flower-supernode", tmp_path)
    with ExitStack() as stack:
        server_process = stack.enter_context(running(superlink, tmp_path, "superlink"))
        for node in range(2):
            own = str(free_port())
            address = ["--clientappio-api-address", f"127.0.0.1:{own}"] if has_own else ["--port", own]
            config = f'partition-id={node} store="{tmp_path / f"disk-{node}" / "store"}"'
            (tmp_path / f"disk-{node}").mkdir()
            command = ["flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{ports['fleet']}", *address]
            stack.enter_context(running([*command, "--node-config", config], tmp_path, f"node-{node}"))
        submit(tmp_path, ports["control"], server_process)
        deadline, result = time.monotonic() + PATIENCE_SECONDS, tmp_path / "result.json"
        while not result.exists():
            log = (tmp_path / "superlink.log").read_text()[-5000:]
            assert time.monotonic() < deadline, log
            assert server_process.poll() is None, log
            time.sleep(0.5)
    distances = [json.loads(line)["distance"] for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
    assert distances[-1] < 0.5 * distances[0]
    traffic = json.loads((tmp_path / "run" / "traffic.json").read_text())
    for way in ("up", "down"):
        crossed, dense = (sum(kind[way] for kind in traffic[form].values()) for form in ("sent", "uncompressed"))
        assert crossed < 0.5 * dense
