"""The bench's client app: an empty reply, or the honest one, each with what its process cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from fedreuse.deploy.flower import client
from fedreuse.deploy.resident.line import VARIABLE
from fedreuse.lab.bench.deploy_client import ALONE, EMPTY, RECORD, play


@pytest.fixture(autouse=True)
def _identity() -> Iterator[None]:
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    yield
    TaskIdentity._run_id = TaskIdentity._node_id = TaskIdentity._task_id = None


def asked(way: str, kind: str = "train") -> Message:
    message = Message(RecordDict(), dst_node_id=1, message_type=kind, group_id=way)
    message.metadata.__dict__["_message_id"] = "1"
    return message


def context() -> Context:
    return Context(1, 1, {}, RecordDict(), {})


def test_an_empty_app_says_nothing_but_what_it_cost() -> None:
    reply = play(asked(EMPTY), context())
    assert list(reply.content) == [RECORD]
    told = dict(reply.content[RECORD])
    assert 0 < float(told["process_seconds"]) < 1e6  # type: ignore[arg-type]
    assert 1e6 < int(told["peak_bytes"]) < 1e11  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "function"), [("query", "greet"), ("train", "answer")])
def test_a_process_per_message_knows_of_no_worker(monkeypatch: pytest.MonkeyPatch, kind: str, function: str) -> None:
    heard: list[bool] = []

    def honest(message: Message, _: Context) -> Message:
        heard.append(VARIABLE in os.environ)
        return Message(RecordDict(), reply_to=message)

    monkeypatch.setattr(client, function, honest)
    monkeypatch.setenv(VARIABLE, "/nowhere")
    play(asked("resident worker", kind), context())
    play(asked(ALONE, kind), context())
    assert heard == [True, False]


@pytest.mark.slow
def test_the_empty_app_imports_flower_alone() -> None:
    script = (
        "import sys, fedreuse.lab.bench.deploy_client; print('torch' in sys.modules, 'fedreuse.deploy' in sys.modules)"
    )
    done: Any = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "False False\n", done.stderr
