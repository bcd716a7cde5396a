"""Frames and facts: the fuzzer's seeds, changes of them, and what once ended a run."""

from __future__ import annotations

from pathlib import Path

import msgpack
import numpy as np
import pytest

from tests.fuzz.frames import check_frame, frame_seeds, mutate_frame
from tests.fuzz.seed import FRAME_CORPUS


def nested(depth: int) -> bytes:
    """A list of a list of a list."""
    return b"\x91" * depth + b"\xc0"


def test_every_seed_is_a_frame_and_in_the_corpus() -> None:
    for name, data in frame_seeds().items():
        assert check_frame(data), name
        assert (FRAME_CORPUS / f"seed-{name}").read_bytes() == data, "run `python -m tests.fuzz.seed`"


@pytest.mark.parametrize("path", sorted(FRAME_CORPUS.iterdir()), ids=lambda path: path.name)
def test_the_corpus_is_refused_or_holds_what_it_claims(path: Path) -> None:
    check_frame(path.read_bytes())


@pytest.mark.parametrize("depth", [4, 500, 1023, 1024, 1025, 50_000])
def test_what_is_nested_too_deep_is_refused(depth: int) -> None:
    start = msgpack.packb(["run", 2])[1:]
    assert not check_frame(b"\0\x93" + start + b"\x81\xa8examples" + nested(depth))


@pytest.mark.slow
def test_changes_of_seeds_are_refused_or_hold_what_they_claim() -> None:
    rng = np.random.default_rng(3)
    inputs = list(frame_seeds().values())
    accepted = 0
    for _ in range(3000):
        data = inputs[int(rng.integers(len(inputs)))]
        for _ in range(int(rng.integers(1, 4))):
            data = mutate_frame(data, rng)
        flipped = bytearray(data)
        if rng.random() < 0.5:
            flipped[int(rng.integers(len(flipped)))] ^= 1 << int(rng.integers(8))
        accepted += check_frame(bytes(flipped))
    assert accepted > 300
