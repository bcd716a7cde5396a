"""SuperNode with a resident worker: Flower's program, and a thread that starts, watches and replaces the worker.

`python -m fedreuse.deploy.resident.keeper FOLDER ...` takes the arguments of `flower-supernode` after the folder.
"""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from select import select
from threading import Event, Thread

from fedreuse.core.files import write_whole
from fedreuse.deploy.resident.line import TOKEN_FILE, VARIABLE, called

__all__ = ["Keeper", "main"]

START_SECONDS = 300.0
"""Longest start of a worker."""
LOOK_SECONDS = 30.0
"""Interval in which an idle worker must answer; a busy one has the time of its job."""
_SHORT_SECONDS, _MOST_SHORT, _LONGEST_PAUSE = 60.0, 3, 300.0
_TOKEN_BYTES = 32
_log = logging.getLogger("flwr")


class Keeper(Thread):
    """Thread that keeps a worker running; a token in the folder shows that one is running or starting.

    After three short-lived workers in a row the token is removed for a while: processes of messages then answer at
    once, instead of waiting for a worker that cannot run.
    """

    def __init__(self, folder: Path, first: str = "fedreuse.deploy.flower.at_node:app") -> None:
        """Set the folder, and the app that a worker imports first; nothing starts yet."""
        super().__init__(daemon=True, name="keeper of the resident worker")
        self.folder, self._first = folder, first
        self.worker: subprocess.Popen[bytes] | None = None
        self._is_over = Event()

    def run(self) -> None:
        """Start one worker after the other."""
        short_lives = 0
        while not self._is_over.is_set():
            born = time.monotonic()
            self._keep_one()
            short_lives = short_lives + 1 if time.monotonic() - born < _SHORT_SECONDS else 0
            if short_lives >= _MOST_SHORT:
                self._withdraw()
                self._is_over.wait(min(2.0**short_lives, _LONGEST_PAUSE))
        self._withdraw()

    def stop(self) -> None:
        """End the worker, and start no more."""
        self._is_over.set()
        if self.worker is not None:
            self.worker.kill()
        self.join()

    def _keep_one(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        write_whole(self.folder / TOKEN_FILE, secrets.token_bytes(_TOKEN_BYTES), is_private=True)
        reading, writing = os.pipe()
        command = [sys.executable, "-P", "-m", "fedreuse.deploy.resident.worker"]
        arguments = [str(self.folder), str(writing), self._first]
        self.worker = subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, pass_fds=[writing])
        os.close(writing)
        try:
            reason = "it is stopped" if self._is_over.is_set() else self._watch(reading)
        finally:
            self.worker.kill()
            code = self.worker.wait()
            os.close(reading)
        _log.info("resident worker %d ended (%d): %s", self.worker.pid, code, reason)

    def _watch(self, reports: int) -> str:
        """Wait until the worker is gone or must be replaced; return the reason."""
        deadline, job_seconds = time.monotonic() + START_SECONDS, START_SECONDS
        while True:
            if select([reports], [], [], max(0.0, deadline - time.monotonic()))[0]:
                lines = os.read(reports, 1 << 16).split(b"\n")
                if len(lines) < 2:
                    return "it is gone"
                job_seconds = float(lines[-2])
                deadline = time.monotonic() + (job_seconds or LOOK_SECONDS)
            elif job_seconds:
                return f"it was busy for more than {job_seconds:g} s"
            elif not self._is_awake():
                return "it does not answer"
            else:
                deadline = time.monotonic() + LOOK_SECONDS

    def _is_awake(self) -> bool:
        try:
            with called(self.folder):
                return True
        except OSError:
            return False

    def _withdraw(self) -> None:
        (self.folder / TOKEN_FILE).unlink(missing_ok=True)


def main() -> None:
    """Run `flower-supernode` behind `front_door`, with a resident worker."""
    from fedreuse.deploy.flower.front_door import run_supernode

    folder = Path(sys.argv.pop(1)).absolute()
    os.environ[VARIABLE] = str(folder)
    keeper = Keeper(folder)
    keeper.start()
    try:
        run_supernode()
    finally:
        keeper.stop()


if __name__ == "__main__":
    main()
