"""Limits: by hand for a small schema, wide enough for whatever the codecs make, and never beyond a few models."""

from __future__ import annotations

import contextlib
import tracemalloc

import numpy as np
import pytest

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.limits import FRAME_BYTES, MAX_GROUPS, Limits, limits_of
from fedreuse.compression.wire.modes import MODES
from fedreuse.core.errors import WireError
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from tests.compression.wire.frames import framed

SMALL = ModelSchema(
    Schema((TensorSpec("a", (10, 3)), TensorSpec("b", ()))), counters=Schema((TensorSpec("n", (), "int64", "counter"),))
)


def test_a_small_schema_by_hand() -> None:
    # rows 10 + 1 + 1; three tensors, 32 coordinates of 4, 4 and 8 bytes: 132
    # fewer rows than parcels of one group, so that these are the longest list
    entries, header = 256 + 1024, 4096 + 16 * 1280 + 128 * 3 + 1024 * (32 + 8 * 3) + 132
    parcel = 132 + 5 * 32 + 8448 * 3
    assert limits_of(SMALL) == Limits(entries, header, 27 + header + 8 * 2 * parcel)
    assert len(Envelope("", 0, 0).to_bytes()) - len(Envelope("", 0, 0).header) == FRAME_BYTES


@pytest.mark.parametrize("name", codecs.names())
@pytest.mark.parametrize("shape", [(), (1,), (5, 7), (3, 2000), (60_000,)])
def test_every_codec_fits(name: str, shape: tuple[int, ...]) -> None:
    schema = ModelSchema(Schema((TensorSpec("a", shape),)))
    rng = np.random.default_rng(3)
    flat = rng.normal(size=schema.size).astype(np.float32)
    parcel = codecs.parse(name, "codec").encode(Tensors(schema.weights, flat), schema.weights, rng)
    groups = {f"group {number}": parcel for number in range(MAX_GROUPS)}
    envelope = Envelope("update", 1, 1, parcels=groups)
    limits = limits_of(schema)
    assert len(envelope.header) <= limits.header_bytes
    assert envelope.size() <= limits.message_bytes
    Envelope.from_bytes(envelope.to_bytes(), schema)


def test_a_message_beyond_the_limit_is_refused_unread() -> None:
    most = limits_of(SMALL).message_bytes
    with pytest.raises(WireError, match=f"a message of {most + 1} bytes, but this model's have at most {most}"):
        Envelope.from_bytes(bytes(most + 1), SMALL)
    with pytest.raises(WireError, match="does not start with FR"):
        Envelope.from_bytes(bytes(most), SMALL)


LARGE = ModelSchema(Schema((TensorSpec("w", (3000, 4000)),)))


@pytest.mark.parametrize("code", sorted(MODES))
def test_short_lies_about_a_large_tensor_allocate_next_to_nothing(code: int) -> None:
    """Whatever count and notes claim: reading takes what the message has, not what it says."""
    counts: list[list[int]] = [[0], [1], [12_000_000]] if MODES[code].has_count else [[]]
    for count in counts:
        for note in (1, 2, 8, 32, 2**31 - 1, 10**9):
            for fill in (b"\0", b"\1", b"\x7f", b"\xff"):
                parcel = [bytes([code]), count, {"bits": note, "bucket": note}]
                data = framed(["x", False, {}, [["update", parcel]]], fill * 600)
                tracemalloc.start()
                with contextlib.suppress(WireError):
                    Envelope.from_bytes(data, LARGE)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert peak < 100_000, (count, note, fill)
