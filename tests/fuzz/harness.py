"""What the fuzzer runs: any bytes become a frame with a right checksum; it is refused, or it means exactly one thing.

An input is a selector (1 byte), the header's length (2, little-endian), the header, the arrays. The selector's lowest
and highest bit choose the model, bit 1 whether the receiver holds something already, the others the link at whose
receiving end the message arrives.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from unittest.mock import patch

import msgpack
import numpy as np

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.links.lbgm import Lbgm
from fedreuse.compression.links.link import links, parse_link
from fedreuse.compression.links.three_pc import ThreePc
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes import MODES
from fedreuse.compression.wire.modes.innovation import innovation_block
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows, to_dense, zeros
from tests.compression.wire.frames import ADDRESS, signed

BUFFERS = Schema((TensorSpec("mean", (9,), "float64", "buffer"),))
COUNTERS = Schema((TensorSpec("n", (), "int64", "counter"),))
MODELS = (
    ModelSchema(
        Schema((TensorSpec("a", (10, 6)), TensorSpec("b", (70,)), TensorSpec("one", ()), TensorSpec("none", (0, 3)))),
        BUFFERS,
        COUNTERS,
    ),
    ModelSchema(Schema((TensorSpec("long", (1100,), "float64"), TensorSpec("short", (3, 1), "float64")))),
    ModelSchema(Schema((TensorSpec("wide", (9, 512)), TensorSpec("bias", (9,))))),
)
_WIDE = 128
LINKS = tuple(parse_link(name, "link") for name in links.names())


def frame(data: bytes, addresses: tuple[int, ...] = (3, 9, 4, 2)) -> bytes:
    """The message of an input: its length of the header and its checksum are right."""
    length = min(int.from_bytes(data[1:3], "little"), max(0, len(data) - 3))
    return signed(ADDRESS.pack(length, *addresses) + data[3:])


def model_of(data: bytes) -> ModelSchema:
    """The model that an input is about."""
    return MODELS[2] if data[0] & _WIDE else MODELS[data[0] & 1]


def check(data: bytes) -> bool:
    """Whether the message is one; anything but a WireError gets through to the fuzzer."""
    if not data:
        return False
    model, message = model_of(data), frame(data)
    try:
        envelope = Envelope.from_bytes(message, model)
    except WireError:
        return False
    assert envelope.to_bytes() == message, "what was accepted is written as something else"
    assert envelope.size() == len(message)
    for group, parcel in envelope.parcels.items():
        if parcel is not None:
            _check_parcel(parcel, model.of_group(group))
        _arrive(parcel, model.of_group(group), LINKS[(data[0] >> 2 & 31) % len(LINKS)], bool(data[0] & 2))
    return True


def _check_parcel(parcel: Parcel, schema: Schema) -> None:
    for one in (parcel, *parcel.more):
        for reference in (None, _held(schema)):
            try:
                decoded = one.decode(schema, reference)
            except WireError:
                continue
            _check_tensors(decoded, schema)


def _check_tensors(tensors: Tensors, schema: Schema) -> None:
    """Whole tensors of the schema, and positions within it."""
    assert all(spec is schema.specs[schema.positions[spec.name]] for spec in tensors.schema)
    if tensors.index is not None and len(tensors.index):
        assert tensors.index[0] >= 0
        assert tensors.index[-1] < tensors.schema.size
        assert (tensors.index[1:] > tensors.index[:-1]).all()
    assert to_dense(tensors).values.shape == (tensors.schema.size,)


def _arrive(parcel: Parcel | None, schema: Schema, link: Any, is_held: bool) -> None:
    """At the receiving end of a link, as the server's port lets it in."""
    if not link.has_memory:
        return  # that is decoding alone
    try:
        with np.errstate(all="ignore"):
            arrived, _ = link.receive(parcel, _held(schema) if is_held else None, _context(schema))
    except WireError:
        return
    assert arrived.schema.positions.keys() <= schema.positions.keys()


@cache
def _context(schema: Schema) -> LinkContext:
    return LinkContext(schema, 3, 0, np.random.default_rng(7), {})


@cache
def _held(schema: Schema) -> Tensors:
    return Tensors(schema, (np.arange(schema.size) % 7 - 3).astype(schema.dtype))


def seed_of(envelope: Envelope, selector: int = 0) -> bytes:
    """The input that stands for a message."""
    body = envelope.to_bytes()[27:]
    return bytes([selector]) + len(envelope.header).to_bytes(2, "little") + body


def seeds() -> dict[str, bytes]:
    """One input for each codec, link and shape of message that the library can make."""
    found = {
        "empty": seed_of(Envelope("train", 3, 9, 4, 2)),
        "values": seed_of(Envelope("score", 3, 9, values=_VALUES)),
    }
    for which, model in enumerate(MODELS[:2]):
        rng = np.random.default_rng(5)
        flat = rng.normal(size=model.weights.size).astype(model.weights.dtype)
        flat[rng.random(flat.size) < 0.5] = 0
        update = Tensors(model.weights, flat)
        for name in codecs.names() if which == 0 else _LONG:
            encode = codecs.parse({"name": name, "least": 0} if name == "packed" else name, "codec").encode
            found[f"{name}-{which}"] = _seed(encode(update, model.weights, rng), which)
            some = drop_rows(update, {model.weights.specs[0].name: (0, 2)})
            found[f"{name}-rows-{which}"] = _seed(encode(some, model.weights, rng), which)
            found[f"{name}-zeros-{which}"] = _seed(encode(zeros(model.weights), model.weights, rng), which)
        for kind in ("fp16", "bf16", "int8", "int4"):
            narrow = codecs.parse({"name": "narrow", "values": kind}, "codec")
            found[f"narrow-{kind}-{which}"] = _seed(narrow.encode(update, model.weights, rng), which)
        found |= _link_seeds(update, model.weights, which)
    whole = {"update": None, "buffers": pack_tensors(_held(BUFFERS), BUFFERS)}
    whole["counters"] = pack_tensors(Tensors(COUNTERS, np.array([2**40])), COUNTERS)
    found |= _packed_seeds()
    found["groups"] = seed_of(Envelope("update", 3, 9, parcels=whole, keep=True))
    return found


_LONG = ("dense", "top_k", "ecuq", "ternary", "packed")
_VALUES: dict[str, Any] = {"score": 0.25, "is_fresh": True, "names": ("a", (3, -1)), "big": 2**63}


def _seed(parcel: Parcel, which: int) -> bytes:
    return seed_of(Envelope("update", 3, 9, parcels={"update": parcel}), which)


def _packed_seeds() -> dict[str, bytes]:
    """Coded against what the receiver holds, as an update is; with a number that is none, and with decay.

    Each also with nothing squeezed, so that a changed byte is a changed symbol and not a broken zstd frame.
    """
    found = _packed("packed")
    with patch("fedreuse.compression.wire.entropy._WORTH", 2**31):
        return found | _packed("plain")


def _packed(prefix: str) -> dict[str, bytes]:
    found = {}
    for which, model in ((0, MODELS[0]), (_WIDE, MODELS[2])):
        schema, rng = model.weights, np.random.default_rng(11)
        held = _held(schema)
        steps = (rng.normal(size=schema.size) * 1e-3).astype(np.float32)
        moved = {
            "moved": held.values + steps,
            "decayed": np.where(steps > 0, held.values * np.float32(0.999), held.values + steps),
        }
        for name, values in moved.items():
            change = values - held.values
            change[3] = np.nan
            for inner in ("top_k", "dense") if name == "moved" else ("top_k", "nonzero"):
                packed = codecs.parse({"name": "packed", "codec": inner, "least": 0}, "codec")
                parcel = packed.encode(Tensors(schema, change), schema, rng, held)  # type: ignore[call-arg]
                found[f"{prefix}-{name}-{inner}-{which}"] = _seed(parcel, which)
        for inner in ("qsgd", "ternary", "ecuq", "natural", "rand_k", "eden", "subspace", "low_rank"):
            packed = codecs.parse({"name": "packed", "codec": inner, "least": 0}, "codec")
            parcel = packed.encode(Tensors(schema, np.repeat(steps[::4], 4)[: schema.size]), schema, rng)
            found[f"{prefix}-{inner}-{which}"] = _seed(parcel, which)
    return found


def _link_seeds(update: Tensors, schema: Schema, which: int) -> dict[str, bytes]:
    context = _context(schema)
    _, state = (lbgm := Lbgm(threshold=0.9)).send(update, None, context)
    recycled, _ = lbgm.send(update, state, context)
    two, _ = ThreePc().send(update, None, context)
    levels = pack_tensors(update, schema, lambda flat: innovation_block(flat, 3), {"bits": 3})
    at = {name: which + 2 + 4 * place for place, name in enumerate(links.names())}
    return {
        f"lbgm-{which}": _seed(recycled, at["lbgm"]),
        f"three_pc-{which}": _seed(two, at["three_pc"]),
        f"laq-{which}": _seed(levels, at["laq"]),
    }


def mutate(data: bytes, rng: np.random.Generator, mutated: Any) -> bytes:
    """A change that keeps the outer form: of the arrays alone, or of one entry of the header; `mutated` does it."""
    length = int.from_bytes(data[1:3], "little")
    header, arrays = data[3 : 3 + length], data[3 + length :]
    try:
        tree = msgpack.unpackb(header)
    except (ValueError, msgpack.UnpackException):
        return bytes(mutated(data))
    if rng.random() < 0.5 and arrays:
        arrays = bytes(mutated(arrays))
    else:
        header = msgpack.packb(_changed(tree, rng))
    return data[:1] + len(header).to_bytes(2, "little", signed=False) + header + arrays


_NUMBERS = (0, 1, 2, 3, 7, 8, 9, 33, 60, 70, 255, 1024, 1100, 2**31 - 1, 2**32, 10**9, -1)


def _changed(tree: Any, rng: np.random.Generator) -> Any:
    """The same tree with one entry changed, somewhere."""
    if isinstance(tree, list) and tree:
        at = int(rng.integers(len(tree)))
        return [*tree[:at], _changed(tree[at], rng), *tree[at + 1 :]]
    if isinstance(tree, dict) and tree:
        name = list(tree)[int(rng.integers(len(tree)))]
        return {**tree, name: _changed(tree[name], rng)}
    if isinstance(tree, bytes) and tree:
        at = int(rng.integers(len(tree)))
        code = int(rng.choice(sorted(MODES)))
        return tree[:at] + bytes([code]) + tree[at + 1 :]
    if isinstance(tree, int) and not isinstance(tree, bool):
        return int(rng.choice(_NUMBERS)) if rng.random() < 0.7 else tree + int(rng.integers(-2, 3))
    return [None, True, 1.5, "x", [], {}, [1], {"bits": 4, "bucket": 3}, b"\1"][int(rng.integers(9))]
