"""Frames and agreements: round trips, and what a stranger may not put into them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.channel.coding import parse_coding
from fedreuse.channel.frame import Agreement, Frame, tag_of
from fedreuse.channel.layout import Layout
from fedreuse.core.errors import WireError

LAYOUT = Layout.of({"w": np.zeros((2, 3), np.float32)})
AGREEMENT = Agreement("0a", LAYOUT, parse_coding("exact").recipe(LAYOUT.schema, shares_initial=False), True, 7)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=40), st.binary(max_size=40))
def test_there_and_back(tag: int, body: bytes, agreement: bytes) -> None:
    frame = Frame(tag, body, agreement)
    assert Frame.from_bytes(frame.to_bytes()) == frame


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data: bytes) -> None:
    for start in (b"", b"FC", b"FC\x01\x01"):
        try:
            Frame.from_bytes(start + data)
        except WireError:
            continue


def test_an_agreement_there_and_back() -> None:
    again = Agreement.from_bytes(AGREEMENT.to_bytes())
    assert again == AGREEMENT
    assert "correction" in again.links().uplink


def test_a_client_imports_nothing_that_a_server_names() -> None:
    plain = json.loads(AGREEMENT.to_bytes())
    plain["recipe"]["uplink"]["update"]["name"] = "antigravity:fly"
    with pytest.raises(WireError, match="antigravity:fly, which is not part of fedreuse"):
        Agreement.from_bytes(json.dumps(plain).encode())


@pytest.mark.parametrize("change", [{"arrays": 3}, {"arrays": [["w", [2], "text"]]}, {"recipe": {"method": "no"}}])
def test_a_malformed_agreement_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(WireError, match="agreement"):
        Agreement.from_bytes(json.dumps({**json.loads(AGREEMENT.to_bytes()), **change}).encode())


def test_tags_differ() -> None:
    assert len({tag_of(session, client, last) for session in "ab" for client in "xy" for last in (0, 1)}) == 8
