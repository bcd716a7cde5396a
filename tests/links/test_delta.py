"""The delta link: differences by hand, delta(dense) is dense, bit for bit or to rounding, and a reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.codecs.dense import Dense
from fedreuse.codecs.nonzero import Nonzero
from fedreuse.codecs.rand_k import RandK
from fedreuse.codecs.top_k import TopK
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows, is_equal, pick
from fedreuse.engine.faults import RandomFaults
from fedreuse.links.delta import Delta
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
    with pytest.raises(ConfigError, match="a delta link carries whole tensors"):
        Delta().send(rest, None, context)


def test_a_codec_that_would_lead_away_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"delta\.codec must not err by more than the tensor's own size"):
        Delta(RandK(0.5))


def test_an_approximate_bit_pattern_is_refused() -> None:
    with pytest.raises(
        ConfigError,
        match=r"delta\.codec must be dense, nonzero or one of them packed with arithmetic: bits, got 'top_k'",
    ):
        Delta(TopK(0.5), "bits")


def test_it_is_never_silent() -> None:
    assert Delta.has_memory
    with pytest.raises(WireError, match="a delta link is never silent"):
        Delta().receive(None, None, CONTEXT)


@pytest.mark.parametrize("codec", ["dense", "nonzero"])
def test_delta_of_dense_is_dense(codec: str) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    dense = federation.play(build("fedavg"), 6)
    bits = federation.play(build("fedavg", downlink={"name": "delta", "codec": codec, "arithmetic": "bits"}), 6)
    assert all(is_same(*pair) for pair in zip(bits.models, dense.models, strict=True))
    rounded = federation.play(build("fedavg", downlink={"name": "delta", "codec": codec}), 6)
    for one, other in zip(rounded.models, dense.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)


def test_both_ends_hold_the_same_whatever_got_lost() -> None:
    setting = Setting(faults=RandomFaults(lost=0.3, late=0.2))
    method = build("fedavg", downlink={"name": "delta", "codec": top_k(0.3)})
    session = QuadraticFederation.draw(5, NOISY).play(method, 12, setting)
    for client, contact in session.record.contacts.items():
        mine = session.store.load(client).memories[contact.ack].downlink["model"]
        assert is_equal(mine, contact.downlink["model"])


@pytest.mark.slow
def test_a_run_with_differences_ends_in_the_same_bits(tmp_path: Path) -> None:
    # one network in float32, running statistics and counters included
    dense = run(tiny(), tmp_path / "dense")
    same = run(tiny(downlink={"model": {"name": "delta", "arithmetic": "bits"}}), tmp_path / "delta")
    assert same.summary["model_digest"] == dense.summary["model_digest"]


def test_equals_the_reference() -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    session = federation.play(build("fedavg", downlink={"name": "delta", "codec": top_k(0.3)}), 5)
    wanted = delta_fedavg(plain_problem(federation, 5, 3), lambda vector: plain_top_k(vector, 0.3))
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)
