"""The test vectors: the present encoder makes them, the present decoder reads them, and bad frames are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes import MODES
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import WireError
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, to_dense
from tests.compression.wire.vectors.make import DRAWN, EXACT, FOLDER, change, files, odd, text, update

NAMES = sorted(path.name for path in FOLDER.glob("*.json"))
VECTORS = [name for name in NAMES if name not in ("schema.json", "refused.json")]


def load(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def schema() -> ModelSchema:
    """Read from the vectors' own file, as another implementation would."""
    written = load("schema.json")
    roles = [
        Schema(tuple(TensorSpec(name, tuple(shape), *rest) for name, shape, *rest in written[role]))
        for role in ("weights", "buffers", "counters")
    ]
    return ModelSchema(*roles)


def as_tuples(value: Any) -> Any:
    return tuple(as_tuples(inner) for inner in value) if isinstance(value, list) else value


def test_the_schema_has_the_digest_it_says() -> None:
    assert schema().digest == load("schema.json")["digest"]


def test_the_present_encoder_makes_them() -> None:
    made = files()
    assert sorted(made) == NAMES, "run `python -m tests.compression.wire.vectors.make`"
    for name, content in made.items():
        if name.removesuffix(".json") not in DRAWN:
            assert text(content) == (FOLDER / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("name", VECTORS)
def test_the_present_decoder_reads_them(name: str) -> None:
    vector, model = load(name), schema()
    frame = bytes.fromhex(vector["frame"])
    envelope = Envelope.from_bytes(frame, model)
    for part in ("kind", "round_number", "exchange", "ack", "durable", "keep"):
        assert getattr(envelope, part) == vector[part]
    assert dict(envelope.values) == {key: as_tuples(value) for key, value in vector["values"].items()}
    assert list(envelope.parcels) == list(vector["groups"])
    for group, said in vector["groups"].items():
        compare(envelope.parcels[group], said, model.of_group(group), vector.get("held"))
    assert envelope.to_bytes() == frame


def compare(parcel: Parcel | None, said: dict[str, Any] | None, tensors: Schema, held: str | None) -> None:
    if said is None or parcel is None:
        assert said is parcel is None
        return
    assert [block.mode.name for block in parcel.blocks] == said["modes"]
    if "values" not in said:
        with pytest.raises(WireError):
            parcel.decode(tensors)
        return
    reference = None if held is None else Tensors(tensors, np.frombuffer(bytes.fromhex(held), tensors.dtype))
    decoded = parcel.decode(tensors, reference)
    assert [spec.name for spec in decoded.schema] == said["tensors"]
    assert (None if decoded.index is None else decoded.index.tolist()) == said["positions"]
    assert decoded.values.tobytes().hex() == said["values"]
    if "second" in said:
        compare(parcel.more[0], said["second"], tensors, None)


@pytest.mark.parametrize("name", EXACT)
def test_what_they_say_is_what_was_sent(name: str) -> None:
    said = load(f"{name}.json")["groups"]["update"]
    values = np.frombuffer(bytes.fromhex(said["values"]), "<f4")
    kept = slice(None) if said["positions"] is None else said["positions"]
    np.testing.assert_array_equal(values, update().values[kept])


def test_every_bit_of_odd_numbers_is_there() -> None:
    for name in ("odd_dense.json", "odd_nonzero.json"):
        parcel = Envelope.from_bytes(bytes.fromhex(load(name)["frame"]), schema()).parcels["update"]
        assert to_dense(parcel.decode(schema().weights)).values.tobytes() == odd().values.tobytes()


def test_values_against_what_is_held_are_the_values() -> None:
    vector = load("packed_against.json")
    parcel = Envelope.from_bytes(bytes.fromhex(vector["frame"]), schema()).parcels["update"]
    coded = parcel.blocks[0]
    assert (coded.mode.name, coded.fields[2][0]) == ("packed", 2)
    with pytest.raises(WireError, match="numbers that the receiver does not hold"):
        parcel.decode(schema().weights)
    said = vector["groups"]["update"]
    kept = slice(None) if said["positions"] is None else said["positions"]
    assert said["values"] == change().values[kept].tobytes().hex()


def test_every_mode_has_a_vector() -> None:
    shown: set[str] = set()
    for name in VECTORS:
        for said in load(name)["groups"].values():
            shown.update((said or {}).get("modes", ()))
    assert shown == {mode.name for mode in MODES.values()}


@pytest.mark.parametrize("bad", load("refused.json"), ids=lambda bad: bad["about"])
def test_bad_frames_are_refused_by_name(bad: dict[str, str]) -> None:
    with pytest.raises(WireError, match=bad["error"]):
        Envelope.from_bytes(bytes.fromhex(bad["frame"]), schema())
