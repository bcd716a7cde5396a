"""`fedreuse lab wire`: a table of where bytes go, and the same as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


@pytest.mark.slow
def test_a_line_per_round_and_kind_of_message(invoke: Invoke, tiny: Path) -> None:
    shown = invoke("lab", "wire", tiny, "--round", "1", "--round", "2")
    assert shown.exit_code == 0, shown.stderr
    for text in ("Bytes of messages by part", "3 train down", "3 update up", "entropy"):
        assert text in shown.stdout


@pytest.mark.slow
def test_as_data_tensor_by_tensor(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    packed = "uplink.update={name: packed, codec: {name: top_k, ratio: 0.2}}"
    shown = invoke("lab", "wire", tiny, packed, "--round", "2", "--out", tmp_path / "run", "--json")
    assert shown.exit_code == 0, shown.stderr
    messages = json.loads(shown.stdout)
    assert {message["direction"] for message in messages} == {"down", "up"}
    assert {message["round_number"] for message in messages} == {2}
    up = next(message for message in messages if message["direction"] == "up")
    assert {"mode", "mask_bytes", "value_bytes", "head_bytes", "full_width", "entropy"} <= set(up["tensors"][0])
    assert (tmp_path / "run" / "COMPLETE").exists()


def test_a_round_is_at_least_the_first(invoke: Invoke, tiny: Path) -> None:
    shown = invoke("lab", "wire", tiny, "--round", "0")
    assert shown.exit_code == 2
    assert "--round must be at least 1, got 0" in shown.stderr
