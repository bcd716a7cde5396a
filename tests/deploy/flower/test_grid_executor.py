"""The grid as an executor: what is refused at the door, who is waited for, when a round is tried again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy.flower import grid_executor, hello, mailbox, post
from fedreuse.deploy.flower.at_node import Client
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import serve
from fedreuse.runs.arrivals import replay_arrivals
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.deploy.fake_grid import FIRST_NODE, FakeGrid
from tests.tiny import results, tiny

Spoil = Callable[[Frame], Frame]
ASYNCHRONOUS = [
    {"name": "fedbuff", "buffer": 2},
    {"name": "ca2fl", "buffer": 2},
    {"name": "fedasync"},
    {"name": "fedreuse_async", "buffer": 2},
    {"name": "lean", "budget": 0.9, "buffer": 2},
]
CONFIG = tiny(rounds={"count": 2, "cohort": 6})


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_executor, "_RETRY_SECONDS", 0.0)
    for module in (hello, mailbox, post):
        monkeypatch.setattr(module, "_POLL_SECONDS", 0.001)


def federation(folder: Path, **options: object) -> tuple[FakeGrid, dict[str, object]]:
    plain = {"out": str(folder / "out"), "timeout_seconds": 0.05, "wait_seconds": 5.0, **options}
    flat = to_flat(CONFIG, Deployment(**plain))  # type: ignore[arg-type]
    return FakeGrid(folder, flat, range(6)), flat  # type: ignore[return-value]


class Unordered(FakeGrid):
    """A grid whose replies come one at a time in a random order, some twice; node 1004 is away for a while."""

    def __init__(self, folder: Path, flat: dict[str, Any], clients: range) -> None:
        super().__init__(folder, flat, clients)
        self._rng, self._pulls, self._twice = np.random.default_rng(3), 0, list[Message]()

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        self._pulls += 1
        self.away = {FIRST_NODE + 4} if 20 < self._pulls < 60 else set()
        ids = [message_id for message_id in message_ids if message_id in self._replies]
        if not ids:
            return []
        found = [self._replies.pop(ids[self._rng.integers(len(ids))]), *self._twice]
        self._twice = found[:1] if self._pulls % 3 == 0 else []
        return found


@pytest.mark.parametrize("method", ASYNCHRONOUS, ids=lambda method: method["name"])
def test_asynchronous_replies_in_any_order_are_replayed_to_the_same_bits(
    method: dict[str, Any], tmp_path: Path
) -> None:
    config = tiny(method=method, rounds={"count": 6, "cohort": 5})
    flat = to_flat(config, Deployment(out=str(tmp_path / "out"), timeout_seconds=60.0, wait_seconds=5.0))
    grid = Unordered(tmp_path, flat, range(6))  # type: ignore[arg-type]
    grid.spoil = spoil_once(FIRST_NODE + 2, lambda frame: replace(frame, body=b"garbage"))
    directory = serve(grid, flat)
    assert "reply of client 2 refused" in (directory.path / "log.txt").read_text()
    rows = [row for row in directory.ledger() if row.purpose == "training"]
    for direction in ("down", "up"):  # nothing is counted twice
        ends = [(row.exchange, row.client) for row in rows if row.direction == direction]
        assert len(ends) == len(set(ends))
    assert {row.status for row in rows} == {"in_time"}
    arrived = [event for event in directory.events() if event.outcome == "fresh"]
    assert len(arrived) == 6 * config.method.needs.buffer == sum(row.direction == "up" for row in rows)
    found = replay_arrivals(directory.path, tmp_path / "replayed")
    assert found.is_same
    assert found.lost == 1
    again = RunDirectory.open(tmp_path / "replayed")
    assert [(row.round_number, row.exchange, row.client, row.direction, row.total_bytes) for row in again.ledger()] == [
        (row.round_number, row.exchange, row.client, row.direction, row.total_bytes) for row in directory.ledger()
    ]
    assert again.events() == directory.events()


def test_a_restarted_server_counts_what_was_under_way_as_lost(tmp_path: Path) -> None:
    config = tiny(method={"name": "lean", "budget": 0.9, "buffer": 2}, rounds={"count": 5, "cohort": 5})
    flat = to_flat(config, Deployment(out=str(tmp_path / "out"), timeout_seconds=60.0, wait_seconds=5.0))
    grid = Unordered(tmp_path, flat, range(6))  # type: ignore[arg-type]

    def stop(request: Message, reply: Message) -> Message:
        if request.metadata.group_id == "3":
            raise KeyboardInterrupt
        return reply

    grid.spoil = stop
    with pytest.raises(KeyboardInterrupt):
        serve(grid, flat)
    assert len(RunDirectory.open(tmp_path / "out").metrics()) == 2
    grid.spoil = lambda request, reply: reply
    directory = serve(grid, {**flat, "deploy.resume": True})
    lost = [event for event in directory.events() if event.outcome == "lost"]
    assert {event.round_number for event in lost} == {3}
    assert 1 <= len(lost) <= 5
    found = replay_arrivals(directory.path, tmp_path / "replayed")
    assert found.is_same
    assert found.lost == len(lost)


def test_a_node_that_lost_its_disk_starts_over_and_the_replay_knows(tmp_path: Path) -> None:
    config = tiny(method={"name": "lean", "budget": 0.9, "buffer": 2}, rounds={"count": 8, "cohort": 6})
    flat = to_flat(config, Deployment(out=str(tmp_path / "out"), timeout_seconds=60.0, wait_seconds=5.0))
    grid = Unordered(tmp_path, flat, range(6))  # type: ignore[arg-type]

    def wipe(request: Message, reply: Message) -> Message:
        if request.metadata.group_id == "4":
            for client in range(6):
                shutil.rmtree(tmp_path / f"node-{client}", ignore_errors=True)
        return reply

    grid.spoil = wipe
    directory = serve(grid, flat)
    assert "forgot" in {row.kind for row in directory.ledger()}
    assert replay_arrivals(directory.path, tmp_path / "replayed").is_same


def test_faults_are_refused_where_they_are_real(tmp_path: Path) -> None:
    config = tiny(method={"name": "fedbuff", "buffer": 2}, faults={"name": "random", "lost": 0.5})
    flat = to_flat(config, Deployment(out=str(tmp_path / "out")))
    with pytest.raises(ConfigError, match=r"^faults are simulated, but an asynchronous method on nodes"):
        serve(FakeGrid(tmp_path, flat, range(6)), flat)  # type: ignore[arg-type]


def spoil_once(node: int, spoil: Spoil | None) -> Callable[[Message, Message], Message | None]:
    """The first training reply of a node becomes another, or does not come."""
    done: list[int] = []

    def change(request: Message, reply: Message) -> Message | None:
        is_first = request.metadata.message_type == "train" and request.metadata.dst_node_id == node and not done
        if not is_first:
            return reply
        done.append(node)
        return None if spoil is None else Message(content_of(spoil(frame_of(reply))), reply_to=request)

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda frame: replace(frame, body=b"garbage"), "at least"),
        (lambda frame: replace(frame, body=frame.body[:-1] + b"\x00\x01"), "checksum"),
        (lambda frame: replace(frame, body=frame.body + bytes(1 << 21)), "bytes, but at most"),
        (lambda frame: replace(frame, run="other"), "another run"),
        (lambda frame: replace(frame, client=3), "in the name of client 3"),
        (lambda frame: replace(frame, facts={}), "computed work"),
        (lambda frame: replace(frame, facts={"work": {**frame.facts["work"], "seconds": float("inf")}}), "impossible"),
        (None, "did not answer within"),
    ],
)
def test_a_bad_reply_is_a_lost_one_and_the_log_says_why(tmp_path: Path, spoil: Spoil | None, reason: str) -> None:
    grid, flat = federation(tmp_path)
    grid.spoil = spoil_once(FIRST_NODE + 2, spoil)
    directory = serve(grid, flat)
    assert reason in (directory.path / "log.txt").read_text()
    lost = {"name": "listed", "entries": [{"round": 1, "client": 2, "fate": "lost"}]}
    run(tiny(faults=lost, rounds={"count": 2, "cohort": 6}), tmp_path / "simulated")
    deployed, simulated = results(directory), results(tmp_path / "simulated")
    assert [deployed[key] == simulated[key] for key in ("model", "ledger", "events")] == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "score"}, "'score' ('update', 'buffers', 'counters'), expected: update (update, "),
        ({"parcels": {}}, "'update' (nothing), expected: update (update, "),
    ],
)
def test_a_wellformed_reply_that_is_no_answer_is_a_lost_one(tmp_path: Path, changes: Any, reason: str) -> None:
    grid, flat = federation(tmp_path)
    schema = Client(grid.contexts[FIRST_NODE], 0).schema

    def other(frame: Frame) -> Frame:
        return replace(frame, body=replace(Envelope.from_bytes(frame.body, schema), **changes).to_bytes())

    grid.spoil = spoil_once(FIRST_NODE + 2, other)
    directory = serve(grid, flat)
    assert f"round 1: reply of client 2 refused: the reply is {reason}" in (directory.path / "log.txt").read_text()
    assert [row.client for row in directory.ledger() if row.status == "refused"] == [2]
    lost = {"name": "listed", "entries": [{"round": 1, "client": 2, "fate": "lost"}]}
    run(tiny(faults=lost, rounds={"count": 2, "cohort": 6}), tmp_path / "simulated")
    deployed, simulated = results(directory), results(tmp_path / "simulated")
    assert (deployed["model"], deployed["events"]) == (simulated["model"], simulated["events"])


@pytest.mark.slow
def test_an_answer_to_an_earlier_exchange_is_refused(tmp_path: Path) -> None:
    grid, flat = federation(tmp_path)
    kept: list[Frame] = []

    def answer_again(request: Message, reply: Message) -> Message:
        if request.metadata.message_type != "train" or request.metadata.dst_node_id != FIRST_NODE + 4:
            return reply
        kept.append(frame_of(reply))
        return Message(content_of(kept[0]), reply_to=request)

    grid.spoil = answer_again
    directory = serve(grid, flat)
    assert "it answers exchange 1 instead of exchange 2" in (directory.path / "log.txt").read_text()
    assert [(event.round_number, event.client) for event in directory.events() if event.outcome == "lost"] == [(2, 4)]


@pytest.mark.slow
def test_below_the_minimum_the_round_is_tried_again_with_the_same_result(tmp_path: Path) -> None:
    grid, flat = federation(tmp_path, min_replies=6)
    grid.spoil = spoil_once(FIRST_NODE + 2, None)
    directory = serve(grid, flat)
    run(CONFIG, tmp_path / "simulated")
    deployed, simulated = results(directory), results(tmp_path / "simulated")
    assert (deployed["model"], deployed["events"]) == (simulated["model"], simulated["events"])
    # the abandoned attempt crossed too: six requests, and the five replies that came
    rows = directory.ledger()
    assert [sum(row.exchange == number for row in rows) for number in (1, 2, 3)] == [11, 12, 12]
    assert sum(row.status == "abandoned" for row in rows) == 5


@pytest.mark.slow
def test_too_few_too_often_ends_the_run_and_it_can_be_resumed(tmp_path: Path) -> None:
    grid, flat = federation(tmp_path, min_replies=6, retries=1)
    grid.spoil = lambda request, reply: None if request.metadata.group_id == "2" else reply
    with pytest.raises(RunError, match="0 of 6 clients answered in time, at least 6 must; tried 2 times"):
        serve(grid, flat)
    assert len(RunDirectory.open(tmp_path / "out").metrics()) == 1
    grid.spoil = lambda request, reply: reply
    directory = serve(grid, {**flat, "deploy.resume": True})
    run(CONFIG, tmp_path / "simulated")
    assert results(directory)["model"] == results(tmp_path / "simulated")["model"]


@pytest.mark.slow
def test_a_client_that_left_is_lost_until_another_node_plays_it(tmp_path: Path) -> None:
    grid, flat = federation(tmp_path)
    newcomer = 2000

    def leave(request: Message, reply: Message) -> Message:
        if request.metadata.group_id == "1":
            grid.away.add(FIRST_NODE + 5)
            grid.contexts[newcomer] = grid.contexts[FIRST_NODE + 5]
        return reply

    grid.spoil = leave
    directory = serve(grid, flat)
    assert (newcomer, "query") in grid.asked
    assert "node 2000 is client 5" in (directory.path / "log.txt").read_text()
    run(CONFIG, tmp_path / "simulated")
    assert results(directory)["model"] == results(tmp_path / "simulated")["model"]  # its disk came with it


@pytest.mark.slow
def test_a_client_that_stays_away_is_lost(tmp_path: Path) -> None:
    grid, flat = federation(tmp_path, min_clients=5)
    grid.away.add(FIRST_NODE)
    directory = serve(grid, flat)
    assert "client 0 is not connected" in (directory.path / "log.txt").read_text()
    assert {event.client for event in directory.events() if event.outcome == "lost"} == {0}
