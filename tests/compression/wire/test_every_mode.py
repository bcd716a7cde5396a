"""Every mode and dtype: whatever bits a tensor holds, both ends decode the same, and its length was known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.links.lbgm import Lbgm
from fedreuse.compression.wire.block import ABSENT
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes.coefficient import COEFFICIENT
from fedreuse.compression.wire.modes.innovation import innovation_block
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows, is_equal, to_dense

DTYPES = ("float32", "float64", "int64")
LOSSLESS = {"dense", "nonzero"}
SHAPES = [(0,), (), (1,), (0, 3), (3, 0), (2, 3), (9,), (5, 8), (70,)]


def patterns(dtype: str) -> np.dtype:
    return np.dtype(f"u{np.dtype(dtype).itemsize}")


def odd(dtype: str) -> list[int]:
    """Bit patterns at the edges: zeros of both signs, denormals, extremes, infinities, NaNs with payloads."""
    info = {"float32": (23, 8), "float64": (52, 11)}.get(dtype)
    if info is None:
        return [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    fraction, exponent = info
    infinity, sign = ((1 << exponent) - 1) << fraction, 1 << (fraction + exponent)
    least, most = 1, infinity - 1
    quiet, payload, signalling = infinity | 1 << (fraction - 1), infinity | 1 << (fraction - 1) | 5, infinity | 1
    one_sided = [0, least, (1 << fraction) - 1, 1 << fraction, most, infinity, quiet, payload, signalling]
    return one_sided + [sign | pattern for pattern in one_sided]


@st.composite
def flats(draw: st.DrawFn, dtype: str, size: int) -> np.ndarray:
    """All alike, ordinary, odd, or any bits."""
    kind = patterns(dtype)
    some = st.sampled_from(odd(dtype))
    anything = st.integers(0, 2 ** (8 * kind.itemsize) - 1)
    how = draw(st.sampled_from(["alike", "few", "odd", "any", "ordinary"]))
    if how == "alike":
        return np.full(size, draw(st.one_of(some, anything)), kind).view(dtype)
    if how == "ordinary":
        return (np.random.default_rng(draw(st.integers(0, 99))).normal(size=size) * 100).astype(dtype)
    if how == "few":
        flat = np.zeros(size, kind)
        for at in draw(st.lists(st.integers(0, max(0, size - 1)), max_size=3)) if size else []:
            flat[at] = draw(st.one_of(some, anything))
        return flat.view(dtype)
    entries = some if how == "odd" else anything
    return np.array(draw(st.lists(entries, min_size=size, max_size=size)), kind).view(dtype)


@st.composite
def tensors(draw: st.DrawFn) -> Tensors:
    dtype = draw(st.sampled_from(DTYPES))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    schema = Schema(tuple(TensorSpec(f"t{at}", shape, dtype) for at, shape in enumerate(shapes)))
    pieces = [draw(flats(dtype, spec.size)) for spec in schema]
    return Tensors(schema, np.concatenate(pieces))


def crossed(parcel: Parcel, schema: Schema) -> Parcel:
    """The parcel at the other end; on the way it had the length that was predicted, and only one form."""
    envelope = Envelope("update", 1, 1, parcels={"update": parcel})
    data = envelope.to_bytes()
    assert envelope.size() == len(data)
    again = Envelope.from_bytes(data, ModelSchema(schema))
    assert again.to_bytes() == data
    arrived = again.parcels["update"]
    assert arrived is not None
    return arrived


def agree(parcel: Parcel, schema: Schema) -> Tensors:
    """What both ends decode, which is the same."""
    here, there = parcel.decode(schema), crossed(parcel, schema).decode(schema)
    assert is_equal(here, there)
    assert here.is_sparse == there.is_sparse
    return there


def of_any_size(name: str) -> Any:
    """The codec as it comes, tiny tensors included."""
    return {"name": name, "least": 0} if name == "packed" else name


@pytest.mark.slow
@pytest.mark.parametrize("name", codecs.names())
@given(tensors(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_codec(name: str, sent: Tensors, seed: int) -> None:
    codec = codecs.parse(of_any_size(name), "codec")
    parcel = codec.encode(sent, sent.schema, np.random.default_rng(seed))
    arrived = agree(parcel, sent.schema)
    if name in LOSSLESS:
        assert is_equal(arrived, sent)
    if name in ("top_k", "packed"):  # what packed codes unless told otherwise
        kept = slice(None) if arrived.index is None else arrived.index
        present = to_dense(arrived).values[kept]
        is_kept = present.view(patterns(str(present.dtype))) != 0
        assert present[is_kept].tobytes() == sent.values[kept][is_kept].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", codecs.names())
@given(tensors(), st.sets(st.integers(0, 8), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_every_codec_about_some_rows(name: str, sent: Tensors, gone: set[int]) -> None:
    rows = {spec.name: gone for spec in sent.schema if spec.shape}
    some = drop_rows(sent, rows)
    parcel = codecs.parse(of_any_size(name), "codec").encode(some, sent.schema, np.random.default_rng(0))
    arrived = agree(parcel, sent.schema)
    if name in LOSSLESS:
        for spec in some.schema:
            there = arrived[spec.name] if spec.rows is None else arrived[spec.name][list(spec.rows)]
            assert there.tobytes() == some[spec.name].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("values", ["fp16", "bf16", "int8", "int4"])
@given(tensors(), st.sampled_from(["dense", "nonzero", "top_k"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_narrow_values(values: str, sent: Tensors, inner: str, is_packed: bool) -> None:
    spec = {"name": "narrow", "values": values, "codec": inner}
    codec = codecs.parse({"name": "packed", "codec": spec, "least": 0} if is_packed else spec, "codec")
    agree(codec.encode(sent, sent.schema, np.random.default_rng(0)), sent.schema)


@st.composite
def held_tensors(draw: st.DrawFn) -> tuple[Tensors, Tensors]:
    """An update and what the receiver holds: ordinary differences, or any bits against any bits."""
    shapes = draw(st.lists(st.sampled_from([*SHAPES, (6, 30)]), min_size=1, max_size=3))
    schema = Schema(tuple(TensorSpec(f"t{at}", shape) for at, shape in enumerate(shapes)))
    held = np.concatenate([draw(flats("float32", spec.size)) for spec in schema])
    change = np.concatenate([draw(flats("float32", spec.size)) for spec in schema])
    with np.errstate(all="ignore"):
        if draw(st.booleans()):
            change = (held + change * np.float32(draw(st.sampled_from([1e-6, 1e-3, 1.0])))) - held
        if draw(st.booleans()):
            change = np.where(np.arange(len(held)) % 3 == 0, held * np.float32(-0.01), change)
    return Tensors(schema, change), Tensors(schema, held)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dense", "nonzero", "top_k"])
@given(held_tensors())
@settings(max_examples=80, deadline=None)
def test_packed_against_any_numbers(name: str, pair: tuple[Tensors, Tensors]) -> None:
    sent, held = pair
    codec = codecs.parse({"name": "packed", "codec": name, "least": 0}, "codec")
    parcel = codec.encode(sent, sent.schema, np.random.default_rng(0), held)  # type: ignore[call-arg]
    arrived = crossed(parcel, sent.schema).decode(sent.schema, held)
    plain = codecs.parse(name, "codec").encode(sent, sent.schema, np.random.default_rng(0))
    assert is_equal(arrived, plain.decode(sent.schema))
    assert parcel.field_bytes == plain.field_bytes
    assert parcel.body_bytes <= plain.body_bytes


@pytest.mark.slow
@given(tensors(), st.integers(1, 32))
@settings(max_examples=60, deadline=None)
def test_innovations(sent: Tensors, bits: int) -> None:
    if sent.schema.dtype.kind == "f":
        agree(pack_tensors(sent, sent.schema, lambda flat: innovation_block(flat, bits), {"bits": bits}), sent.schema)


@given(st.integers(0, 99), st.sampled_from(["tensor", "model"]), st.sampled_from(["float32", "float64"]))
@settings(max_examples=25, deadline=None)
def test_coefficients(seed: int, granularity: str, dtype: str) -> None:
    schema = Schema((TensorSpec("a", (3, 4), dtype), TensorSpec("b", (), dtype), TensorSpec("c", (5,), dtype)))
    update = Tensors(schema, np.random.default_rng(seed).normal(size=schema.size).astype(dtype))
    context = LinkContext(schema, 1, 0, np.random.default_rng(0))
    link = Lbgm(threshold=0.5, granularity=granularity)  # type: ignore[arg-type]
    first, state = link.send(update, None, context)
    _, held = link.receive(crossed(first, schema), None, context)
    second, state = link.send(update, state, context)
    assert {block.mode for block in second.blocks} == {COEFFICIENT}
    arrived, _ = link.receive(crossed(second, schema), held, context)
    assert is_equal(arrived, link.delivered(second, state, context))


def test_a_group_without_tensors() -> None:
    nothing = Tensors(Schema(), np.empty(0, np.float32))
    for name in codecs.names():
        parcel = codecs.parse(name, "codec").encode(nothing, Schema(), np.random.default_rng(0))
        assert agree(parcel, Schema()).values.size == 0


def test_absent_tensors_stay_absent() -> None:
    schema = Schema((TensorSpec("a", (3,)), TensorSpec("b", (2,))))
    part = Tensors(schema.subset(["b"]), np.ones(2, np.float32))
    for name in codecs.names():
        parcel = codecs.parse(name, "codec").encode(part, schema, np.random.default_rng(0))
        assert parcel.blocks[0].mode is ABSENT
        assert [spec.name for spec in agree(parcel, schema).schema] == ["b"]


@pytest.mark.slow
@pytest.mark.parametrize("name", codecs.names())
def test_ten_million_coordinates(name: str) -> None:
    schema = Schema((TensorSpec("w", (2500, 4000)),))
    flat = np.random.default_rng(1).normal(size=schema.size).astype(np.float32)
    flat[::3] = 0
    sent = Tensors(schema, flat)
    parcel = codecs.parse(name, "codec").encode(sent, schema, np.random.default_rng(2))
    arrived = agree(parcel, schema)
    if name in LOSSLESS:
        assert is_equal(arrived, sent)
