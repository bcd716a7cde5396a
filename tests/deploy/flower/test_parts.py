"""Long messages in parts: the bits of a simulation, and an interrupted transfer goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flwr.app import Message

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import WireError
from fedreuse.deploy.flower import hello, parts, post
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import frame_of
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.parts import Interrupted, NodeParts, Outgoing, fetch, push
from fedreuse.deploy.flower.server import serve
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.deploy.fake_grid import FIRST_NODE, FakeGrid
from tests.tiny import results, tiny

CONFIG = tiny(rounds={"count": 2, "cohort": 6}, uplink={})
PART = 200


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_PART_BYTES", PART)
    for module in (hello, post):
        monkeypatch.setattr(module, "_POLL_SECONDS", 0.001)


def deployed(folder: Path, spoil: Callable[[Message, Message], Message | None]) -> RunDirectory:
    flat = to_flat(CONFIG, Deployment(out=str(folder / "out"), timeout_seconds=0.05, wait_seconds=5.0))
    grid = FakeGrid(folder, flat, range(6))
    grid.spoil = spoil
    return serve(grid, flat)


@pytest.mark.slow
def test_parts_give_the_results_of_a_simulation_and_leave_no_files(tmp_path: Path) -> None:
    seen: list[int] = []

    def note(request: Message, reply: Message) -> Message:
        seen.extend(len(frame_of(message).body) for message in (request, reply))
        return reply

    directory = deployed(tmp_path, note)
    assert 0 < max(seen) <= PART
    assert results(directory) == results(run(CONFIG, tmp_path / "simulated"))
    assert not list(tmp_path.glob("node-*/*/request-*.part"))
    assert len(list(tmp_path.glob("node-*/*/reply-*.part"))) == 6  # of the last round alone


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["part", "wanted"])
def test_a_part_that_is_lost_is_repeated_and_its_bytes_are_counted(tmp_path: Path, kind: str) -> None:
    lost: list[int] = []

    def lose_third(request: Message, reply: Message) -> Message | None:
        frame = frame_of(request)
        if kind in frame.facts and request.metadata.dst_node_id == FIRST_NODE + 2:
            lost.append(0)
            return None if len(lost) == 3 else reply
        return reply

    directory = deployed(tmp_path, lose_third)
    simulated = run(CONFIG, tmp_path / "simulated")
    assert results(directory)["model"] == results(simulated)["model"]
    (row,) = [row for row in directory.ledger() if row.kind == "part"]
    direction = "down" if kind == "part" else "up"
    assert (row.client, row.direction, row.status, row.total_bytes) == (2, direction, "abandoned", PART)
    messages = [int(one.traffic()["messages"].both.sum()) for one in (directory, simulated)]
    assert messages[0] - messages[1] == PART


@pytest.mark.slow
def test_a_node_that_falls_silent_half_way_is_lost_and_its_bytes_are_counted(tmp_path: Path) -> None:
    def silent(request: Message, reply: Message) -> Message | None:
        frame = frame_of(request)
        is_second = frame.facts.get("wanted", (0, 0, 0))[1] >= PART
        return None if is_second and request.metadata.dst_node_id == FIRST_NODE + 2 else reply

    directory = deployed(tmp_path, silent)
    assert {event.client for event in directory.events() if event.outcome == "lost"} == {2}
    assert "its reply stopped after 200 of" in (directory.path / "log.txt").read_text()
    # one part arrived, and the second was asked for four times
    assert {row.total_bytes for row in directory.ledger() if row.kind == "part"} == {5 * PART}


def test_a_node_that_restarts_goes_on_where_its_file_ends(tmp_path: Path) -> None:
    outgoing = Outgoing(Envelope("train", 1, 1, values={"long": "x" * 700}))
    asked: list[int] = []

    def ask(facts: dict[str, object], body: bytes) -> Frame | None:
        frame = Frame("run", facts=facts, body=body)
        asked.append(len(body))
        if len(asked) == 2:
            for path in tmp_path.iterdir():  # a disk that was wiped: the node has nothing
                path.unlink()
        have = NodeParts(tmp_path, 4).add(frame)
        if len(asked) == 4:
            return None  # arrived, but the answer did not
        return Frame("run", 4, {"have": have})

    repeated = push(outgoing, ask)
    # parts at 0, 200 (refused: 0 here), 0, 200 (not confirmed), 200 (here already), 400, 600
    assert asked == [PART] * 6 + [outgoing.name[1] - 3 * PART]
    assert repeated == 2 * PART
    frame = Frame("run", facts={"go": outgoing.name})
    assert bytes(NodeParts(tmp_path, 4).take(frame)) == bytes(outgoing.data)
    with pytest.raises(WireError, match="not complete here"):
        NodeParts(tmp_path, 4).take(frame)


def test_false_claims_are_refused(tmp_path: Path) -> None:
    outgoing = Outgoing(Envelope("train", 1, 1, values={"long": "x" * 700}))
    with pytest.raises(WireError, match="claims to have 99999 bytes"):
        push(outgoing, lambda facts, body: Frame("run", 4, {"have": 99_999}))
    with pytest.raises(Interrupted, match="stopped after 0 of") as stopped:
        fetch(1, 1000, lambda facts, body: Frame("run", 4, {"from": 0}, b"short"))
    assert stopped.value.num_bytes == 4 * PART
    node = NodeParts(tmp_path, 4)
    for wanted in ((1, 0, 10), (1, 2), "x", (1, -1, 5)):
        with pytest.raises(WireError):
            node.part(Frame("run", facts={"wanted": wanted}))
    node.keep(Envelope("update", 1, 7, values={"long": "x" * 500}))
    assert len(node.part(Frame("run", facts={"wanted": (7, 10, 20)}))) == 10
    with pytest.raises(WireError, match="no part from 0 to 300"):
        node.part(Frame("run", facts={"wanted": (7, 0, 300)}))  # longer than a part


def test_frames_of_parts_have_a_version_of_their_own() -> None:
    assert [Frame("r", facts=facts).to_bytes()[2] for facts in ({}, {"work": {}}, {"go": (1, 2)})] == [1, 1, 2]
    assert Frame.from_bytes(Frame("r", facts={"go": (1, 2)}).to_bytes()).facts == {"go": (1, 2)}
