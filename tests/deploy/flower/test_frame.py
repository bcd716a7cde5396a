"""The frame: there and back, and nothing malformed comes in."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.core.errors import WireError
from fedreuse.core.local_trainer import Work
from fedreuse.deploy.flower.frame import Frame, work_of


def test_a_frame_is_seven_bytes_and_its_header_before_the_body() -> None:
    # FD, version 1, header of 4 bytes; header: array of 3, empty text, -1, empty map
    assert Frame("", body=b"body").to_bytes() == b"FD\x01\x04\x00\x00\x00" + b"\x93\xa0\xff\x80" + b"body"


@pytest.mark.slow
@given(st.text(max_size=9), st.integers(-1, 99), st.dictionaries(st.text(max_size=5), st.integers(0, 9)), st.binary())
def test_there_and_back(run: str, client: int, facts: dict[str, int], body: bytes) -> None:
    frame = Frame(run, client, facts, body)
    assert Frame.from_bytes(frame.to_bytes()) == frame


@given(st.binary(max_size=60))
def test_whatever_comes_is_a_frame_or_refused(data: bytes) -> None:
    for start in (b"", b"FD\x01", b"FD\x01\x05\x00\x00\x00"):
        with contextlib.suppress(WireError):
            Frame.from_bytes(start + data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("text", "not bytes"),
        (b"FD", "too short"),
        (b"XX\x01\x00\x00\x00\x00", "start with FD"),
        (b"FD\x03\x00\x00\x00\x00", "version 3"),
        (b"FD\x01\xff\xff\xff\xff", "claims"),
        (b"FD\x01\x03\x00\x00\x00\x93\xa0", "claims"),
        (b"FD\x01\x01\x00\x00\x00\xc1", "malformed"),
        (b"FD\x01\x04\x00\x00\x00\x93\xa0\xa0\x80", "wrong type"),
        (b"FD\x01\x04\x00\x00\x00\x93\xa0\xc3\x80", "wrong type"),
        (b"FD\x01\xfe\x03\x00\x00\x93\xa0\x00\x81\xa1x" + b"\x91" * 1015 + b"\x00", "nested more than 3 deep"),
    ],
)
def test_what_is_refused_and_why(data: object, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        Frame.from_bytes(data)


@pytest.mark.parametrize(
    ("name", "number"),
    [("training_steps", 2**64 - 1), ("proxy_examples", -1), ("flops", 1 << 60), ("seconds", 1e9), ("seconds", 1)],
)
def test_work_that_nobody_can_have_done_is_refused(name: str, number: float) -> None:
    honest = {**asdict(Work()), "flops": 10**16}
    assert work_of(Frame("run", 0, {"work": honest})) == Work(flops=10**16)
    with pytest.raises(WireError, match="impossible"):
        work_of(Frame("run", 0, {"work": {**honest, name: number}}))
