"""Values of numbers: their bytes, and what a reply must have."""

from __future__ import annotations

import numpy as np

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.message import Answer
from fedreuse.core.numbers import Numbers, pack_numbers, unpack_numbers
from fedreuse.testing.quadratic import quadratic_schema


def test_numbers_travel_as_float32() -> None:
    assert pack_numbers([1.0, -2.5]) == bytes.fromhex("0000803f000020c0")
    assert unpack_numbers(pack_numbers([1.0, -2.5])).tolist() == [1.0, -2.5]
    assert unpack_numbers(pack_numbers([0.1])).dtype == np.float32
    assert not unpack_numbers(pack_numbers([0.1])).flags.writeable


def test_the_required_form() -> None:
    assert Numbers(2).fits(bytes(8))
    assert not any(Numbers(2).fits(value) for value in (bytes(7), bytes(12), "12345678", (0.0, 0.0)))
    answer = Answer("update", values={"slopes": Numbers(2), "steps": int})
    assert str(answer) == "update (slopes: 2 numbers, steps: int)"


def test_they_are_part_of_a_message() -> None:
    envelope = Envelope("update", 1, 1, values={"slopes": pack_numbers([1.0, 2.0])})
    again = Envelope.from_bytes(envelope.to_bytes(), quadratic_schema())
    assert unpack_numbers(again.values["slopes"]).tolist() == [1.0, 2.0]
