"""Secrets in memory: a child reads them through its descriptor; no file, command line or other process has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from flwr.common.args import try_obtain_flwr_app_token
from flwr.supercore.constant import TaskType
from flwr.supercore.superexec.executor.types import ExecutionSpec

from fedreuse.deploy.flower import task_secrets
from fedreuse.deploy.flower.task_secrets import in_memory, start_task

READ = "import sys, pathlib; print(pathlib.Path(sys.argv[1]).read_text())"


def test_a_child_reads_what_it_inherits_and_no_other_process_does() -> None:
    with in_memory(b"a secret") as (descriptor, path):
        command = [sys.executable, "-c", READ, path]
        assert subprocess.run(command, pass_fds=[descriptor], capture_output=True, check=True).stdout == b"a secret\n"
        assert subprocess.run(command, capture_output=True, check=False).returncode
    assert not Path(path).exists()


def test_a_task_starts_without_its_token_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def start(command: list[str], pass_fds: list[int], **_: object) -> None:
        seen.append(command)
        given = type("Given", (), {"token_file": command[command.index("--token-file") + 1]})
        assert try_obtain_flwr_app_token(given) == "0123abcd"  # as Flower's program reads it

    monkeypatch.setattr(task_secrets.subprocess, "Popen", start)
    spec = ExecutionSpec(TaskType.CLIENT_APP, "127.0.0.1:9", "0123abcd", True, None, False, 7, False, 1)
    assert start_task(spec).status == "accepted"
    assert seen[0][:3] == ["flwr-clientapp", "--runtime-api-address", "127.0.0.1:9"]
    assert seen[0][-3:] == ["--insecure", "--parent-pid", "7"]
    assert not [word for word in seen[0] if "0123abcd" in word]
