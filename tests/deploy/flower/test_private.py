"""What this package uses of Flower's undocumented parts; a failure here names what a new version of Flower changed."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flwr.app import ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from packaging.version import Version

import fedreuse
from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower import private
from fedreuse.deploy.flower.private import (
    PROGRAM_PARTS,
    calling_app,
    check_programs,
    check_replies,
    context_from_bytes,
    context_to_bytes,
    is_on_wire,
    message_from_bytes,
    message_to_bytes,
    of_type,
    program_part,
    remade,
    seconds_since_submission,
    serialized_bytes,
    set_identity,
    speaks_http,
    task_id,
)

PUBLIC = {"flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy", "flwr.simulation"}
INSTALLED = Version(version("flwr"))
of_programs = pytest.mark.skipif(not str(INSTALLED).startswith("1.41."), reason="the programs of flwr 1.41")


def test_no_other_file_imports_undocumented_parts() -> None:
    found = set()
    for file in Path(fedreuse.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {file.name for module in modules if module.startswith("flwr.") and module not in PUBLIC}
    assert found == {"private.py"}


@of_programs
@pytest.mark.parametrize("name", PROGRAM_PARTS)
def test_the_programs_have(name: str) -> None:
    assert program_part(name) is not None


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAM_PARTS, "gone", "flwr.app:Nothing")
    monkeypatch.setitem(PROGRAM_PARTS, "away", "flwr.nothing")
    with pytest.raises(ConfigError, match=r"has no flwr\.app:Nothing, which the guarded SuperLink"):
        program_part("gone")
    with pytest.raises(ConfigError, match=r"has no flwr\.nothing, which"):
        program_part("away")


def test_a_reply_is_remade_with_other_content_and_another_id() -> None:
    request = Message(RecordDict(), 7, "train")
    reply = Message(RecordDict({"old": ConfigRecord({"a": 1})}), reply_to=request)
    made = remade(reply, RecordDict({"new": ConfigRecord({"b": 2})}), "first")
    assert list(made.content) == ["new"]
    assert (made.metadata.src_node_id, made.metadata.reply_to_message_id) == (7, "first")
    assert remade(reply, Error(2, "why"), "first").error.reason == "why"


def test_a_mod_finds_its_app_and_asks_it_for_another_type() -> None:
    def asking(message: Message, context: Context, call_next: Any) -> Message:
        found = calling_app()
        assert found is app
        return (
            call_next(message, context)
            if message.metadata.message_type == "evaluate"
            else found(of_type(message, "evaluate"), context)
        )

    app = ClientApp(mods=[asking])
    app.train()(lambda message, context: message)
    app.evaluate()(lambda message, context: Message(RecordDict({"here": ConfigRecord()}), reply_to=message))
    context = Context(run_id=1, node_id=2, node_config={}, state=RecordDict(), run_config={})
    reply = app(Message(RecordDict(), 7, "train"), context)
    assert (list(reply.content), reply.metadata.message_type, reply.metadata.src_node_id) == (["here"], "evaluate", 7)
    assert calling_app() is None


@pytest.mark.skipif(Version("1.41") > INSTALLED, reason="nodes speak gRPC")
def test_the_grid_of_real_nodes() -> None:
    from flwr.superlink.grid.http_grid import HttpGrid

    assert is_on_wire(object.__new__(HttpGrid))
    assert not is_on_wire(object())  # type: ignore[arg-type]


def test_the_transport_of_the_installed_version() -> None:
    assert speaks_http() == (Version("1.41") <= INSTALLED)


@of_programs
def test_the_programs_are_those_of_the_installed_version() -> None:
    check_programs()


def test_programs_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "version", lambda name: "1.30.0")
    with pytest.raises(ConfigError, match=r"need flwr 1\.41\.x, but 1\.30\.0 is installed"):
        check_programs()


def test_messages_and_contexts_as_bytes() -> None:
    content = RecordDict({"config": ConfigRecord({"lr": 0.5})})
    message = message_from_bytes(message_to_bytes(Message(content, 7, "train.warm")))
    assert (message.content, message.metadata.dst_node_id, message.metadata.message_type) == (content, 7, "train.warm")
    context = Context(run_id=1, node_id=2, node_config={"partition-id": 3}, state=content, run_config={"a": True})
    assert context_from_bytes(context_to_bytes(context)) == context
    assert serialized_bytes(content) > len("config") + 8


def test_replies_must_have_the_weight() -> None:
    contents = [RecordDict({"metrics": MetricRecord({"loss": 1.0})})]
    with pytest.raises(BaseException, match="num-examples"):  # the errors of 1.22 are no Exceptions
        check_replies(contents, "num-examples")
    check_replies(contents, "loss")


@of_programs
def test_the_identity_of_a_process() -> None:
    set_identity(1, 2, 3)
    assert task_id() == 3


def test_the_age_of_a_run() -> None:
    def age(pending_at: object) -> float:
        grid: Any = SimpleNamespace(run=SimpleNamespace(pending_at=pending_at))
        return seconds_since_submission(grid)

    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    assert age(hour_ago.isoformat()) == pytest.approx(3600, abs=60)
    assert age(hour_ago.replace(tzinfo=None).isoformat()) == pytest.approx(3600, abs=60)
    assert age((hour_ago + timedelta(hours=2)).isoformat()) == 0  # the SuperLink's clock is ahead
    assert [age(""), age(None)] == [0, 0]
