"""Secrets of Flower's Runtime API in memory only: the one that fetches tasks, and the token of each task.

In its default mode Flower hands a task to every process that asks for one, and writes the task's token on a command
line that all users can read. Here Flower's process mode with its own secret is used, and the program
`python -m fedreuse.deploy.flower.task_secrets` is `flower-superexec` with tokens in anonymous files.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fedreuse.deploy.flower.private import program_part

__all__ = ["in_memory", "main", "start_task", "task_starter"]

_SECRET_BYTES = 32
_WAIT_SECONDS = 1.0


@contextmanager
def in_memory(content: bytes) -> Iterator[tuple[int, str]]:
    """Yield the descriptor of an anonymous file, and the path under which this process and its children read it."""
    descriptor = os.memfd_create("secret")
    try:
        os.write(descriptor, content)
        yield descriptor, f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@contextmanager
def task_starter(host: str, port: int, root_certificate: str) -> Iterator[None]:
    """Start the program that runs tasks, and add its secret to the arguments of this process.

    Args:
        host: Address of the Runtime API.
        port: Its port.
        root_certificate: Root certificate file of the Runtime API; empty without TLS.
    """
    resolve_bind_address = program_part("resolve_bind_address")
    address = resolve_bind_address(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    with in_memory(secrets.token_bytes(_SECRET_BYTES)) as (descriptor, path):
        command = [
            sys.executable, "-P", "-m", "fedreuse.deploy.flower.task_secrets", "--runtime-api-address", address,
            "--superexec-auth-secret-file", path, "--parent-pid", str(os.getpid()),
            *(["--root-certificates", root_certificate] if root_certificate else ["--insecure"]),
        ]  # fmt: skip
        process = subprocess.Popen(command, pass_fds=[descriptor], start_new_session=True)
        sys.argv += ["--isolation", "process", "--superexec-auth-secret-file", path]
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(_WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start_task(spec: Any) -> Any:
    """Start the process of a task; its token is in an anonymous file that the process inherits.

    Args:
        spec: Flower's ExecutionSpec.

    Returns:
        Flower's LaunchResult.
    """
    programs = program_part("TASK_TYPE_TO_COMMAND")
    addresses = program_part("TASK_TYPE_TO_APPIO_API_ADDRESS_ARG")
    with in_memory(spec.token.encode()) as (descriptor, path):
        command = [
            programs[spec.task_type], addresses[spec.task_type], spec.runtime_api_address, "--token-file", path,
        ]  # fmt: skip
        if spec.insecure:
            command += ["--insecure"]
        elif spec.root_certificates_path is not None:
            command += ["--root-certificates", spec.root_certificates_path]
        if spec.parent_pid is not None:
            command += ["--parent-pid", str(spec.parent_pid)]
        output = subprocess.DEVNULL if spec.suppress_output else None
        subprocess.Popen(command, pass_fds=[descriptor], stdout=output, stderr=output)
    return program_part("LaunchResult").accepted()


def main() -> None:
    """Run `flower-superexec` with `start_task`."""
    executor = program_part("SubprocessExecutor")
    executor.launch = lambda _, spec: start_task(spec)
    program_part("flower_superexec")()


if __name__ == "__main__":
    main()
