"""A worker that dies, hangs or has no memory left is replaced, and no message is lost by it: real processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from fedreuse.core.errors import RunError
from fedreuse.deploy.resident import keeper as module
from fedreuse.deploy.resident.keeper import Keeper
from fedreuse.deploy.resident.line import TOKEN_FILE, called
from tests.deploy.resident.conftest import Ask

pytestmark = pytest.mark.slow
HERE = os.getpid()


def process_of(kept: Keeper) -> int:
    assert kept.worker is not None
    return kept.worker.pid


def await_another(kept: Keeper, process: int) -> None:
    deadline = time.monotonic() + 120
    while process_of(kept) == process:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_that_dies_or_has_no_memory_is_replaced_and_the_message_is_answered(kept: Keeper, ask: Ask) -> None:
    first = ask()
    assert first == {"process": process_of(kept), "times": 1}
    assert ask("die") == {"process": HERE, "times": 2}  # as if the kernel had taken it; the count is not doubled
    await_another(kept, first["process"])
    second = ask()
    assert second == {"process": process_of(kept), "times": 3}
    assert ask("no memory") == {"process": HERE, "times": 4}
    await_another(kept, second["process"])
    kept.stop()
    assert not (kept.folder / TOKEN_FILE).exists()
    assert ask() == {"process": HERE, "times": 5}  # nobody is there, and nobody is waited for


def test_a_worker_that_holds_a_message_too_long_is_killed_and_replaced(kept: Keeper, ask: Ask) -> None:
    first = ask()
    with pytest.raises(RunError, match=r"no answer within 0\.5 s"):
        ask("hang", seconds=0.5)
    await_another(kept, first["process"])
    assert ask()["process"] == process_of(kept)


def test_a_worker_that_hangs_between_messages_is_found_and_replaced(
    kept: Keeper, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr("fedreuse.deploy.resident.line.GREETING_SECONDS", 5.0)
    first = ask()["process"]
    os.kill(first, signal.SIGSTOP)
    await_another(kept, first)


def test_a_worker_that_cannot_live_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SHORT", 1)
    keeper = Keeper(tmp_path, "tests.deploy.resident.nothing:app")
    keeper.start()
    while keeper.worker is None or keeper.worker.poll() is None or (tmp_path / TOKEN_FILE).exists():
        time.sleep(0.02)
    keeper.stop()
    assert keeper.worker.returncode == 1


def test_only_the_owner_can_enter_and_no_worker_outlives_its_keeper(kept: Keeper, ask: Ask) -> None:
    process = ask()["process"]
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    assert (kept.folder / TOKEN_FILE).stat().st_mode & 0o777 == 0o600
    (kept.folder / TOKEN_FILE).write_bytes(bytes(32))  # an old one
    with called(kept.folder) as (_, version):
        assert version
    kept.stop()
    assert not Path(f"/proc/{process}").exists()
