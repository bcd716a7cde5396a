"""Processes of our own: a fresh interpreter, one function, one connection.

Unlike those of `multiprocessing` they never import the caller's main module, so that a script without a guard, a
notebook and standard input can start them. What travels is pickled by the connection, between processes of one run.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Process", "main"]


class Process:
    """A running process; it ends when its function does, and should when its connection is closed."""

    def __init__(self, function: Callable[..., None], *args: Any) -> None:
        """Calls `function(connection, *args)` there; the function must be importable by its name."""
        self.connection, there = Pipe()
        script = (
            f"import sys; sys.path[:] = {sys.path!r}; sys.argv[:] = {sys.argv!r}; "
            f"from fedreuse.engine.processes import main; main({there.fileno()})"
        )
        self._popen = subprocess.Popen(
            [sys.executable, "-c", script], pass_fds=[there.fileno()], stdin=subprocess.DEVNULL
        )
        there.close()
        try:
            self.connection.send((function, args))
        except OSError:
            pass  # one that is dead already is noticed when it is listened to
        except BaseException:  # what cannot travel leaves nobody behind
            self.end(at_once=True)
            raise

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._popen.pid

    def exit_code(self) -> int:
        """Wait for the end; negative numbers are signals."""
        return self._popen.wait()

    def end(self, *, at_once: bool = False) -> None:
        """Close the connection and wait a little; who does not go is killed."""
        self.connection.close()
        if at_once:
            self._popen.kill()
        try:
            self._popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def main(descriptor: int) -> None:
    """The other side: Ctrl-C is for the one who started us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(descriptor)
    try:
        function, args = connection.recv()
    except EOFError:
        return
    function(connection, *args)
