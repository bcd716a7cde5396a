"""The delta link: differences by hand, delta(dense) is dense, bit for bit or to rounding, and a reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.delta import Delta
from fedreuse.core.errors import ConfigError, NotHeld, WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows, is_equal, pick
from fedreuse.engine.faults import RandomFaults
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.delta import delta_fedavg
from tests.references.local import top_k as plain_top_k
from tests.tiny import tiny

SCHEMA = Schema((TensorSpec("a", (4,)),))
CONTEXT = LinkContext(SCHEMA, 1, 0, np.random.default_rng(0))
EVERY_BIT = st.integers(0, 2**32 - 1)


def tensors(*values: float) -> Tensors:
    return Tensors(SCHEMA, np.array(values, np.float32))


def test_differences_by_hand() -> None:
    # first (1, 2, 3, 4), dense: 16 bytes; then (1, 2.5, 3, 4): one coordinate changed, a bitmap byte and a value
    link = Delta()
    parcel, held = link.send(tensors(1, 2, 3, 4), None, CONTEXT)
    there, mirror = link.receive(parcel, None, CONTEXT)
    assert (parcel.field_bytes, there.values.tolist()) == (16, [1, 2, 3, 4])
    parcel, held = link.send(tensors(1, 2.5, 3, 4), held, CONTEXT)
    there, mirror = link.receive(parcel, mirror, CONTEXT)
    assert parcel.field_bytes == 5
    assert there.values.tolist() == [1, 2.5, 3, 4]
    assert is_equal(held, mirror)
    parcel, held = link.send(tensors(1, 2.5, 3, 4), held, CONTEXT)
    assert parcel.field_bytes == 0  # nothing changed


def test_missed_changes_arrive_together() -> None:
    # the receiver was away while two coordinates changed one after the other: both differences are sent at once
    link = Delta(arithmetic="bits")
    parcel, held = link.send(tensors(1, 2, 3, 4), None, CONTEXT)
    _, mirror = link.receive(parcel, None, CONTEXT)
    parcel, held = link.send(tensors(9, 2, 3, 7), held, CONTEXT)
    there, _ = link.receive(parcel, mirror, CONTEXT)
    assert parcel.field_bytes == 9
    assert there.values.tolist() == [9, 2, 3, 7]


INITIAL = tensors(1, 2, 3, 4)
STARTED = replace(CONTEXT, initial=INITIAL)


def test_what_both_ends_made_themselves_does_not_travel() -> None:
    # the model is still the initial one: four blocks that are absent; then one coordinate differs, 5 bytes as above
    link = Delta(start="initial")
    parcel, held = link.send(INITIAL, None, STARTED)
    there, mirror = link.receive(parcel, None, STARTED)
    assert (parcel.field_bytes, there.values.tolist()) == (0, [1, 2, 3, 4])
    parcel, held = link.send(tensors(1, 2.5, 3, 4), held, STARTED)
    there, mirror = link.receive(parcel, mirror, STARTED)
    assert (parcel.field_bytes, there.values.tolist()) == (5, [1, 2.5, 3, 4])
    assert is_equal(held, mirror)
    assert parcel.notes == {"held": crc32(np.array([1, 2, 3, 4], "<f4").tobytes())}


def test_a_later_first_contact_is_a_difference_to_the_initial_model() -> None:
    # (9, 2, 3, 5) against (1, 2, 3, 4) through Top-K of one: the receiver holds (9, 2, 3, 4) and lacks the rest
    link = Delta(TopK(0.25), start="initial")
    parcel, held = link.send(tensors(9, 2, 3, 5), None, STARTED)
    there, mirror = link.receive(parcel, None, STARTED)
    assert there.values.tolist() == [9, 2, 3, 4]
    assert is_equal(held, mirror)


def test_without_a_common_start_everything_travels() -> None:
    link = Delta(start="initial")
    parcel, held = link.send(tensors(1, 2, 3, 4), None, CONTEXT)
    there, mirror = link.receive(parcel, None, STARTED)  # even where only this end has an initial model
    assert (parcel.field_bytes, parcel.notes, there.values.tolist()) == (16, {}, [1, 2, 3, 4])
    parcel, held = link.send(tensors(1, 2, 3, 5), held, CONTEXT)
    assert link.receive(parcel, mirror, CONTEXT)[0].values.tolist() == [1, 2, 3, 5]


@pytest.mark.parametrize("mine", [None, tensors(1, 2, 3, 5)])
@pytest.mark.parametrize("wanted", [INITIAL, tensors(7, 7, 7, 7)])
def test_a_receiver_that_holds_something_else_says_so(mine: Tensors | None, wanted: Tensors) -> None:
    link = Delta(start="initial")
    parcel, _ = link.send(wanted, None, STARTED)
    with pytest.raises(NotHeld, match="tensors that are not held here"):
        link.receive(parcel, None, replace(CONTEXT, initial=mine))
    with pytest.raises(NotHeld):
        link.receive(parcel, tensors(0, 0, 0, 0), STARTED)


def test_a_lossy_codec_is_mended_the_next_time() -> None:
    # Top-K of the difference: what did not fit is still a difference
    link = Delta(TopK(0.25))
    _, held = link.send(tensors(0, 0, 0, 0), None, CONTEXT)
    for wanted in ([4, 0, 0, 0], [4, 3, 0, 0], [4, 3, 2, 0], [4, 3, 2, 1]):
        _, held = link.send(tensors(4, 3, 2, 1), held, CONTEXT)
        assert held.values.tolist() == wanted


@pytest.mark.slow
@given(arrays(np.uint32, (3, 4), elements=EVERY_BIT), st.sampled_from([Dense(), Nonzero()]))
@settings(max_examples=200, deadline=None)
def test_bit_patterns_arrive_bit_for_bit(patterns: np.ndarray, codec: Dense | Nonzero) -> None:
    link, held, mirror = Delta(codec, "bits"), None, None
    for row in patterns:
        wanted = Tensors(SCHEMA, row.view(np.float32))
        parcel, held = link.send(wanted, held, CONTEXT)
        there, mirror = link.receive(parcel, mirror, CONTEXT)
        assert is_equal(there, wanted)
        assert is_equal(link.delivered(parcel, held, CONTEXT), wanted)


def test_floating_point_rounds_about_one_coordinate_in_six() -> None:
    schema = Schema((TensorSpec("a", (60_000,)),))
    rng, context = np.random.default_rng(1), LinkContext(schema, 1, 0, np.random.default_rng(0))
    first = Tensors(schema, rng.normal(size=60_000).astype(np.float32))
    second = Tensors(schema, (first.values + rng.normal(size=60_000)).astype(np.float32))
    held = Delta(Dense()).send(first, None, context)[1]
    there = Delta(Dense()).send(second, held, context)[1]
    differs = there.values != second.values
    assert 0.1 < differs.mean() < 0.25
    np.testing.assert_allclose(there.values, second.values, atol=5e-7)
    assert is_equal(Delta(Dense(), "bits").send(second, held, context)[1], second)


def test_other_tensors_start_over() -> None:
    schema = Schema((TensorSpec("a", (2,)), TensorSpec("b", (2,))))
    context = LinkContext(schema, 1, 0, np.random.default_rng(0))
    whole, link = Tensors(schema, np.arange(4, dtype=np.float32)), Delta()
    parcel, held = link.send(whole, None, context)
    _, mirror = link.receive(parcel, None, context)
    part = pick(whole, ("b",))
    parcel, held = link.send(part, held, context)
    there, mirror = link.receive(parcel, mirror, context)
    assert parcel.field_bytes == 8
    assert is_equal(there, part)
    assert is_equal(held, mirror)


def test_some_rows_of_a_tensor_are_refused() -> None:
    schema = Schema((TensorSpec("a", (2, 2)),))
    context = LinkContext(schema, 1, 0, np.random.default_rng(0))
    rest = drop_rows(Tensors(schema, np.arange(4, dtype=np.float32)), {"a": (0,)})
    with pytest.raises(ConfigError, match="sends whole tensors"):
        Delta().send(rest, None, context)


def test_a_codec_that_would_lead_away_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"delta\.codec must be contractive"):
        Delta(RandK(0.5))


def test_an_approximate_bit_pattern_is_refused() -> None:
    with pytest.raises(
        ConfigError,
        match=r"delta\.codec must be dense, nonzero or one of them packed with arithmetic: bits, got 'top_k'",
    ):
        Delta(TopK(0.5), "bits")


def test_it_is_never_silent() -> None:
    assert Delta.has_memory
    with pytest.raises(WireError, match="always sends a parcel"):
        Delta().receive(None, None, CONTEXT)


@pytest.mark.parametrize("codec", ["dense", "nonzero"])
def test_delta_of_dense_is_dense(codec: str) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    dense = federation.play(build("fedavg"), 6)
    bits = federation.play(build("fedavg", downlink={"name": "delta", "codec": codec, "arithmetic": "bits"}), 6)
    assert all(is_same(*pair) for pair in zip(bits.models, dense.models, strict=True))
    method = build("fedavg", downlink={"name": "delta", "codec": codec, "arithmetic": "bits", "start": "initial"})
    started = federation.play(method, 6)
    assert all(is_same(*pair) for pair in zip(started.models, dense.models, strict=True))
    rounded = federation.play(build("fedavg", downlink={"name": "delta", "codec": codec}), 6)
    for one, other in zip(rounded.models, dense.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("start", ["dense", "initial"])
def test_both_ends_hold_the_same_whatever_got_lost(start: str) -> None:
    setting = Setting(faults=RandomFaults(lost=0.3, late=0.2))
    method = build("fedavg", downlink={"name": "delta", "codec": top_k(0.3), "start": start})
    session = QuadraticFederation.draw(5, NOISY).play(method, 12, setting)
    assert "resyncs" not in session.ledger.counts
    for client, contact in session.record.contacts.items():
        mine = session.store.load(client).memories[contact.ack].downlink["model"]
        assert is_equal(mine, contact.downlink["model"])


@pytest.mark.slow
def test_a_run_with_differences_ends_in_the_same_bits(tmp_path: Path) -> None:
    # one network in float32, running statistics and counters included; in round 1 the weights do not travel
    dense = run(tiny(), tmp_path / "plain")
    for start in ("dense", "initial"):
        link = {"name": "delta", "arithmetic": "bits", "start": start}
        same = run(tiny(downlink={"model": link}), tmp_path / start)
        assert same.summary["model_digest"] == dense.summary["model_digest"]
        first = [row for row in same.ledger() if row.round_number == 1 and row.direction == "down"]
        assert all((row.group_bytes("model") == 0) == (start == "initial") for row in first)


@pytest.mark.slow
def test_every_executor_starts_from_the_same_model(tmp_path: Path) -> None:
    link = {"name": "delta", "codec": top_k(0.1), "start": "initial"}
    runs = [
        run(tiny(downlink={"model": link}, executor=executor), tmp_path / str(number))
        for number, executor in enumerate(({"name": "serial", "mode": "strict"}, {"name": "pool", "workers": 2}))
    ]
    assert runs[0].summary["model_digest"] == runs[1].summary["model_digest"]
    assert runs[0].summary["communication"] == runs[1].summary["communication"]
    assert all("resyncs" not in one.summary["counts"] for one in runs)


@pytest.mark.parametrize("start", ["dense", "initial"])
def test_equals_the_reference(start: str) -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    session = federation.play(build("fedavg", downlink={"name": "delta", "codec": top_k(0.3), "start": start}), 5)
    problem = plain_problem(federation, 5, 3)
    wanted = delta_fedavg(
        problem, lambda vector: plain_top_k(vector, 0.3), problem.weights if start == "initial" else None
    )
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)


def test_a_first_message_may_be_rounded_and_differences_correct_it() -> None:
    # int8 levels of the largest magnitude, 4: steps of 4 / 127
    link = Delta(whole=Narrow(Dense(), "int8"))
    wanted = tensors(1, 2, 3, 4)
    parcel, held = link.send(wanted, None, CONTEXT)
    there, mirror = link.receive(parcel, None, CONTEXT)
    assert is_equal(held, there)
    assert np.abs(there.values - wanted.values).max() <= 2 / 127 + 1e-6
    assert not is_equal(there, wanted)
    there, _ = link.receive(link.send(wanted, held, CONTEXT)[0], mirror, CONTEXT)
    np.testing.assert_allclose(there.values, wanted.values, rtol=1e-6)
    with pytest.raises(ConfigError, match="whole must keep every coordinate"):
        Delta(whole=TopK(0.5))
