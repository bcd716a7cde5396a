"""What the fuzzer runs on frames: any bytes at the door of a deployment are refused, or hold what they claim.

An input is a selector (1 byte) and the header of a frame (msgpack: run, client, facts), or, with the selector's lowest
bit, the whole frame. Facts go where a server uses them: work, the roster, the proof of a key.
"""

from __future__ import annotations

import struct
from dataclasses import asdict

import msgpack
import numpy as np

from fedreuse.core.errors import WireError, refusal, shortened
from fedreuse.core.formats import FRAME
from fedreuse.core.local_trainer import Work
from fedreuse.deploy.flower.frame import Frame, work_of
from fedreuse.deploy.flower.identity import proven_key
from fedreuse.deploy.flower.roster import Roster
from tests.fuzz.harness import _changed

_AGREED = {"fedreuse": "1", "wire": 1, "configuration": "abc", "schema": "def"}
_KEY = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBGsX0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXY"
    "mMKWT+NC4v4af5uO5+tKfA+eFivOM1drMV7Oy7ZAaDe/UfU="
)


def frame_of(data: bytes) -> bytes:
    """The frame that an input stands for."""
    if data[0] & 1:
        return data[1:]
    return struct.pack("<2sBI", b"FD", FRAME.version, len(data) - 1) + data[1:] + b"body"


def check_frame(data: bytes) -> bool:
    """Whether it is a frame; anything but a WireError gets through to the fuzzer."""
    if not data:
        return False
    try:
        frame = Frame.from_bytes(frame_of(data))
    except WireError as error:
        return _is_short(error, False)
    assert Frame.from_bytes(frame.to_bytes()) == frame or _has_nan(frame)
    for use in (work_of, _admit, _prove):
        try:
            use(frame)
        except WireError as error:
            _is_short(error, True)
    return True


def _is_short(error: WireError, outcome: bool) -> bool:
    """Whatever is said, the log repeats little of it."""
    assert len(refusal(error)) <= 410
    return outcome


def _admit(frame: Frame) -> None:
    told: list[str] = []
    for expected in (_AGREED, {**_AGREED, "examples": 20}):
        roster = Roster(lambda client, agreed=expected: agreed if 0 <= client < 6 else None, told.append)  # type: ignore[misc]
        if roster.admit(7, frame.client, frame.facts):
            assert 0 <= int(roster.facts[frame.client]["examples"]) < 1 << 40
    assert all("\n" not in line and len(line) <= 600 for line in told)
    assert len(shortened(str(frame.facts.get("refused")))) <= 410


def _prove(frame: Frame) -> None:
    assert proven_key(frame.facts, "run", b"challenge", 7)


def _has_nan(frame: Frame) -> bool:
    """What equals nothing, not even itself, is no difference."""
    return "nan" in repr(frame).lower()


def frame_seeds() -> dict[str, bytes]:
    """One input for every use of facts."""
    agreed = {**_AGREED, "examples": 20}
    facts = {
        "work": {"work": asdict(Work(1, 2, 3, 4, 5, 0.5))},
        "hello": agreed,
        "classes": {**agreed, "by_class": (1, 2, 3)},
        "refused": {"refused": "no data"},
        "proof": {**agreed, "key": _KEY, "signature": bytes(70)},
        "deep": {"a": {"b": (1, "c")}},
    }
    found = {f"frame-{name}": b"\0" + msgpack.packb(["run", 2, told]) for name, told in facts.items()}
    return found | {"frame-whole": b"\1" + Frame("run", 1, agreed, b"body").to_bytes()}


def mutate_frame(data: bytes, rng: np.random.Generator) -> bytes:
    """A change of one entry of the header."""
    try:
        return data[:1] + bytes(msgpack.packb(_changed(msgpack.unpackb(data[1:]), rng)))
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return data
