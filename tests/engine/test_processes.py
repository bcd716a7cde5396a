"""Processes of our own: a function, a connection, no main module, and an end in every case."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedreuse.engine.processes import Process

ROOT = Path(__file__).parents[2]


def echo(connection, word):
    """Say a word, then whatever is said to us, until left alone."""
    connection.send((word, os.getpid()))
    while True:
        try:
            connection.send(connection.recv())
        except EOFError:
            return


def sleep(connection):
    """Heed nobody."""
    connection.send("asleep")
    time.sleep(600)


@pytest.mark.slow
def test_it_calls_a_function_and_talks():
    process = Process(echo, "hello")
    assert process.connection.recv() == ("hello", process.pid)
    process.connection.send([1, 2])
    assert process.connection.recv() == [1, 2]
    process.end()
    assert process.exit_code() == 0


@pytest.mark.slow
def test_ctrl_c_is_not_for_it():
    process = Process(echo, "hello")
    process.connection.recv()
    os.kill(process.pid, signal.SIGINT)
    process.connection.send("still there")
    assert process.connection.recv() == "still there"
    process.end()


@pytest.mark.slow
def test_one_that_heeds_nobody_is_killed():
    process = Process(sleep)
    process.connection.recv()
    process.end(at_once=True)
    assert process.exit_code() == -signal.SIGKILL


@pytest.mark.slow
def test_a_death_is_an_end_of_the_connection():
    process = Process(sleep)
    process.connection.recv()
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(EOFError):
        process.connection.recv()
    process.end()


@pytest.mark.slow
def test_a_script_without_a_guard_can_start_one():
    script = """
from fedreuse.engine.processes import Process
from tests.engine.test_processes import echo
process = Process(echo, "hello")
print(process.connection.recv()[0])
process.end()
"""
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("hello\n", "")


def children() -> set[str]:
    """The processes that this one started and has not seen end."""
    return {child for tasks in Path("/proc/self/task").glob("*/children") for child in tasks.read_text().split()}


def test_what_cannot_travel_leaves_nobody_behind():
    before = children()
    with pytest.raises(Exception, match=r"pickle|local object"):
        Process(echo, lambda: None)
    assert children() == before
