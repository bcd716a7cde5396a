"""Subprocesses: a fresh interpreter that runs one function with one connection.

Unlike those of `multiprocessing` they never import the caller's main module, so a script without a `__main__` guard,
a notebook and standard input can start them. The connection pickles objects, only between processes of one run.
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
    """A running process; it ends with its function, which should return when the connection is closed."""

    def __init__(self, function: Callable[..., None], *args: Any) -> None:
        """Start a process that calls `function(connection, *args)`; the function must be importable by name."""
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
            pass  # a process that is already dead is detected when its answer is read
        except BaseException:  # for example arguments that cannot be pickled: do not leave an orphan process
            self.end(at_once=True)
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    def exit_code(self) -> int:
        """Wait for the end and return the exit code; a negative number is a signal."""
        return self._popen.wait()

    def end(self, *, at_once: bool = False) -> None:
        """Close the connection and wait up to five seconds; then kill the process. With `at_once`, kill it directly."""
        self.connection.close()
        if at_once:
            self._popen.kill()
        try:
            self._popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def main(descriptor: int) -> None:
    """Run the function that arrives first; Ctrl-C is left to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(descriptor)
    try:
        function, args = connection.recv()
    except EOFError:
        return
    function(connection, *args)
