"""Writes the test vectors of the message format: `python -m tests.compression.wire.vectors.make`.

Each vector is a JSON file: a frame in hexadecimal, the schema it follows, and what it says; tensors as the hexadecimal
bytes of their little-endian values, and the positions of those values (null: all). `held` is what the receiver holds,
where values are coded against it. What nobody can read without the state of a link has no tensors. `refused.json` lists
frames that every decoder must refuse, with what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.links.laq import Laq
from fedreuse.compression.links.lbgm import Lbgm
from fedreuse.compression.links.three_pc import ThreePc
from fedreuse.compression.wire.envelope import VERSION, Envelope
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows
from tests.compression.wire.frames import ADDRESS, START, framed, signed

FOLDER = Path(__file__).parent
SCHEMA = ModelSchema(
    Schema((TensorSpec("conv.weight", (8, 3, 4)), TensorSpec("conv.bias", (8,)), TensorSpec("scale", ()))),
    Schema((TensorSpec("norm.running_mean", (3,), "float64", "buffer"),)),
    Schema((TensorSpec("norm.num_batches_tracked", (), "int64", "counter"),)),
)
WEIGHTS = SCHEMA.weights
EXACT = ("dense", "nonzero", "top_k")
"""Codecs whose kept values are the numbers themselves."""
DRAWN = ("qsgd", "natural", "rand_k", "drive", "eden", "subspace")
"""Codecs that draw: a vector of theirs says how a frame is read, not what an encoder must draw."""


def update() -> Tensors:
    """Numbers without a generator: multiples of 1/64 of both signs, a third of them zero, no two magnitudes alike."""
    places = np.arange(WEIGHTS.size)
    flat = np.where(places % 3 == 1, 0, ((places * 37) % 101 + 1) * np.where(places % 2, -1, 1)) / 64
    return Tensors(WEIGHTS, flat.astype(np.float32))


def odd() -> Tensors:
    """What is no ordinary number: zeros of both signs, denormals, infinities, NaNs with a payload."""
    patterns = np.zeros(WEIGHTS.size, np.uint32)
    patterns[:9] = [0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF]
    return Tensors(WEIGHTS, patterns.view(np.float32))


def held() -> Tensors:
    """What the receiver of an update holds: no two numbers alike."""
    return Tensors(WEIGHTS, ((np.arange(WEIGHTS.size) - 40) / 7).astype(np.float32))


def change() -> Tensors:
    """Trained less held, as an update comes about: a step, decay alone in every fourth place, one that is no number."""
    steps = np.where(np.arange(WEIGHTS.size) % 4, update().values / 1000, held().values * np.float32(-0.001))
    moved = (held().values + steps.astype(np.float32)) - held().values
    moved[5] = np.nan
    return Tensors(WEIGHTS, moved)


HELD = {"packed_against": held}
"""Vectors that only who holds something can read, and what that is."""


def envelopes() -> Iterator[tuple[str, str, Envelope]]:
    """Name, what it shows, the message."""
    yield "train", "a request without tensors", Envelope("train", 5, 7, 6, 3)
    yield "score", "a score of 0.5", Envelope("score", 5, 7, 7, values={"score": 0.5})
    yield "values", "every kind of value", Envelope("x", 1, 2, keep=True, values=_VALUES)
    yield "silence", "a group about which the link stays silent", _message(None)
    yield "forgot", "a client that lost its memory", Envelope("forgot", 5, 7)
    yield "groups", "weights, buffers and counters, dense", _groups()
    yield "odd_dense", "every bit of a float comes back", _message(_encoded("dense", odd()))
    yield "odd_nonzero", "every bit of a float comes back", _message(_encoded("nonzero", odd()))
    for name in codecs.names():
        options = {"least": 0} if name == "packed" else {}
        yield name, f"the codec {name}", _message(_encoded(name, update(), **options))
    yield (
        "packed_dense",
        "the codec packed around dense",
        _message(_encoded("packed", update(), codec="dense", least=0)),
    )
    yield "pairs", "one coordinate of 96", _message(_encoded("top_k", update(), ratio=0.02))
    left = drop_rows(update(), {"conv.weight": (0, 2, 3, 5), "conv.bias": range(8)})
    yield "rows", "rows 1, 4, 6 and 7 of a tensor, another one absent", _message(_encoded("top_k", left))
    packed = codecs.parse({"name": "packed", "codec": "nonzero", "least": 0}, "codec")
    parcel = packed.encode(change(), WEIGHTS, np.random.default_rng(1), held())  # type: ignore[call-arg]
    yield "packed_against", "values against what the receiver holds", _message(parcel)
    yield from _of_links()


_VALUES: dict[str, Any] = {"flag": False, "least": -(2**63), "most": 2**64 - 1, "text": "é", "list": (1, (2.5, "b"))}


def _of_links() -> Iterator[tuple[str, str, Envelope]]:
    context = LinkContext(WEIGHTS, 1, 0, np.random.default_rng(1))
    yield "innovation", "the link laq, 3 bits", _message(Laq(bits=3).send(update(), None, context)[0])
    link = Lbgm(threshold=0.9, granularity="model")
    state = link.send(update(), None, context)[1]
    yield "coefficient", "the link lbgm: one number for all tensors", _message(link.send(update(), state, context)[0])
    yield "second", "the link three_pc: two parcels in one", _message(ThreePc().send(update(), None, context)[0])


def _encoded(name: str, tensors: Tensors, **options: Any) -> Parcel:
    return codecs.parse({"name": name, **options}, "codec").encode(tensors, WEIGHTS, np.random.default_rng(1))


def _message(parcel: Parcel | None) -> Envelope:
    return Envelope("update", 5, 7, 7, parcels={"update": parcel})


def _groups() -> Envelope:
    parcels: dict[str, Parcel | None] = {
        "update": pack_tensors(update(), WEIGHTS),
        "buffers": pack_tensors(Tensors(SCHEMA.buffers, np.array([0.1, -2.0, 1e-310])), SCHEMA.buffers),
        "counters": pack_tensors(Tensors(SCHEMA.counters, np.array([2**40])), SCHEMA.counters),
    }
    return Envelope("update", 5, 7, 7, parcels=parcels)


def refused() -> Iterator[tuple[str, str, bytes]]:
    """What is wrong, the words of this program's error, the frame."""
    good = Envelope("train", 5, 7, 6, 3).to_bytes()
    bitmap = _message(_encoded("top_k", update())).to_bytes()
    yield "a version from the future", "message version 2", good[:2] + bytes([VERSION + 1]) + good[3:]
    yield "another magic", "does not start with FR", b"RF" + good[2:]
    yield "a flipped bit", "checksum mismatch", good[:-1] + b"\x91"
    yield "cut in the frame", "at least 27 bytes", good[:26]
    yield "cut in the arrays", "bytes early", signed(bitmap[START.size : -1])
    yield "a byte too many", "left over", signed(bitmap[START.size :] + b"\0")
    yield "a header beyond the end", "the header claims", signed(ADDRESS.pack(99, 5, 7, 6, 3))
    yield "a key twice", "canonical form", framed(b"\x94\xa1k\xc2\x82\xa1a\1\xa1a\2\x90")
    yield "a longer form of a list", "canonical form", framed(b"\xdc\0\4\xa1k\xc2\x80\x90")
    yield "a list of 2^31 - 1 entries", "malformed header", framed(b"\x94\xa1k\xc2\x80\xdd\x7f\xff\xff\xff")
    for about, words, parcel, arrays in _LIES:
        yield about, words, framed(["update", False, {}, [["update", parcel]]], arrays)


_LIES: list[tuple[str, str, list[Any], bytes]] = [
    ("an unknown mode", "unknown mode 255", [b"\xff\0\0"], b""),
    ("more kept than there are", "97 kept coordinates of 96", [b"\2\0\0", [97]], bytes(97 * 8)),
    ("positions that do not increase", "indices must increase", [b"\2\0\0", [2]], bytes(16)),
    ("positions that wrap around", "indices must increase", [b"\2\0\0", [4]],
     np.array([0, 2**31 - 1, -2, 1], "<i4").tobytes() + bytes(16)),
    ("a bitmap that marks another number", "the bitmap marks 1", [b"\3\0\0", [2]], b"\1" + bytes(11 + 8)),
    ("a mark beyond the tensor", "marked", [b"\0\x0a\0", [1]], b"\0"),
    ("levels of a thousand million bits", "note bits", [b"\x10\0\0", [], {"bits": 10**9, "bucket": 4}], bytes(64)),
    ("a unary part of 4 gigabytes", "unary part", [b"\x11\0\0", [2]], bytes(4) + b"\xff" * 4 + bytes(8)),
    ("code lengths of no Huffman code", "not those of a Huffman code", [b"\x14\0\0"],
     np.array([0, 1], "<f4").tobytes() + b"\4\0" + bytes(20)),
    ("a second of a second", "not contain further parcels", [bytes(3), [], {}, [bytes(3), [], {}, [bytes(3)]]], b""),
]  # fmt: skip


def described(about: str, envelope: Envelope, reference: Tensors | None = None) -> dict[str, Any]:
    """A vector as it is written."""
    names = ("kind", "round_number", "exchange", "ack", "durable", "keep")
    groups = {group: _said(parcel, SCHEMA.of_group(group), reference) for group, parcel in envelope.parcels.items()}
    return {
        "about": about,
        "schema": "schema.json",
        "frame": envelope.to_bytes().hex(),
        **{name: getattr(envelope, name) for name in names},
        "values": dict(envelope.values),
        "groups": groups,
        **({} if reference is None else {"held": reference.values.tobytes().hex()}),
    }


def _said(parcel: Parcel | None, schema: Schema, reference: Tensors | None) -> dict[str, Any] | None:
    if parcel is None:
        return None
    said: dict[str, Any] = {"modes": [block.mode.name for block in parcel.blocks]}
    try:
        tensors = parcel.decode(schema, reference)
    except WireError:
        return said
    said["tensors"] = [spec.name for spec in tensors.schema]
    said["positions"] = None if tensors.index is None else tensors.index.tolist()
    said["values"] = tensors.values.tobytes().hex()
    return said | ({"second": _said(parcel.more[0], schema, None)} if parcel.more else {})


def files() -> dict[str, Any]:
    """Every file's content by name."""
    roles = {"weights": SCHEMA.weights, "buffers": SCHEMA.buffers, "counters": SCHEMA.counters}
    tensors = {
        role: [[spec.name, list(spec.shape), spec.dtype, spec.role, spec.is_positive] for spec in schema]
        for role, schema in roles.items()
    }
    made: dict[str, Any] = {"schema.json": {"digest": SCHEMA.digest, **tensors}}
    made |= {
        f"{name}.json": described(about, envelope, HELD[name]() if name in HELD else None)
        for name, about, envelope in envelopes()
    }
    made["refused.json"] = [{"about": about, "error": words, "frame": frame.hex()} for about, words, frame in refused()]
    return made


def text(content: Any) -> str:
    """As it lies on disk."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them all."""
    for name, content in files().items():
        (FOLDER / name).write_text(text(content), encoding="utf-8")


if __name__ == "__main__":
    main()
