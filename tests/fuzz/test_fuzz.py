"""The fuzzer's corpus, again and again; and the fuzzer itself, for a bounded number of executions."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes import MODES
from tests.fuzz.harness import check, frame, model_of, mutate, seeds
from tests.fuzz.seed import CORPUS

INPUTS = sorted(CORPUS.iterdir())
RUNS = 30_000


@pytest.mark.slow
def test_every_seed_is_a_message_and_in_the_corpus() -> None:
    for name, data in seeds().items():
        assert check(data), name
        assert (CORPUS / f"seed-{name}").exists(), "run `python -m tests.fuzz.seed`"


def test_the_seeds_have_every_mode() -> None:
    found: set[int] = set()
    for data in seeds().values():
        for parcel in Envelope.from_bytes(frame(data), model_of(data)).parcels.values():
            found |= {block.mode.code for block in (parcel.all_blocks() if parcel else ())}
    assert found == set(MODES)


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_the_corpus_is_refused_or_means_one_thing(path: Path) -> None:
    check(path.read_bytes())


@pytest.mark.slow
def test_no_input_of_the_corpus_needs_more_memory_than_it_and_the_model_imply() -> None:
    """A bound that is linear in both: 64 bytes for each byte, and a fixed part for tables of codes."""
    for path in INPUTS:
        data = path.read_bytes()
        check(data)  # what is made once is not counted
        tracemalloc.start()
        check(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64 * (len(data) + model_of(data).dense_bytes) + 2**20, path.name


def test_a_frame_is_right_around_any_input() -> None:
    # selector, a header of two bytes, and one byte behind it
    made = frame(b"\0\2\0ab!")
    assert made[:3] == b"FR\1"
    assert made[7:11] == b"\2\0\0\0"
    assert made[27:] == b"ab!"
    assert frame(b"\0\xff\xffa")[7:11] == b"\1\0\0\0"  # a length beyond the end is cut


@pytest.mark.slow
def test_mutations_reach_behind_the_checksum() -> None:
    """Many seeds changed once are still messages: the whole decoder is tried, not only the header's checks."""
    rng = np.random.default_rng(1)

    def flip(part: bytes) -> bytes:
        changed = bytearray(part)
        changed[int(rng.integers(len(part)))] ^= 1 << int(rng.integers(8))
        return bytes(changed)

    accepted = sum(check(mutate(data, rng, flip)) for data in seeds().values() for _ in range(4))
    assert accepted > len(seeds())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed (extra dev)")
def test_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    for name in ("found", "bad"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-m", "tests.fuzz", f"-runs={RUNS}", "-seed=1", f"-artifact_prefix={tmp_path}/bad/"]
    done = subprocess.run(
        [*command, str(tmp_path / "found"), str(CORPUS)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"Done {RUNS} runs" in done.stderr
    assert not list((tmp_path / "bad").iterdir())
