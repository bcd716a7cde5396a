"""LBGM: projections by hand, the identities of its card, the traps of public code, and what a receiver refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.lbgm import Lbgm, LookBack, projection
from fedreuse.compression.links.link import links
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.block import Block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes.coefficient import COEFFICIENT
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, pick, scale, sub, to_dense, zeros
from fedreuse.methods.aliases import Lbgm as LbgmMethod

SCHEMA = Schema((TensorSpec("a.weight", (2,), "float64"), TensorSpec("b.weight", (2, 2), "float64")))
WHOLE = ModelSchema(SCHEMA)


def context(number: int = 1) -> LinkContext:
    return LinkContext(SCHEMA, number, 0, np.random.default_rng(number))


def tensors(*numbers: float) -> Tensors:
    return Tensors(SCHEMA, np.array(numbers, np.float64))


def drawn(number: int) -> Tensors:
    return Tensors(SCHEMA, np.random.default_rng(number).normal(size=SCHEMA.size))


def modes(parcel) -> list[str]:
    return [block.mode.name for block in parcel.blocks]


# by hand


def test_three_updates_by_hand() -> None:
    link = Lbgm(threshold=0.01)
    parcel, sender = link.send(tensors(3, 4, 1, 0, 0, 0), None, context())
    assert modes(parcel) == ["dense", "dense"]
    arrived, receiver = link.receive(parcel, None, context())
    # a: <g, l> = 18 + 34 = 52, |l|^2 = 25, rho = 2.08; |g|^2 = 108.25, error = 1 - 52^2 / (25 * 108.25) = 0.00083
    # b: at a right angle, error 1
    parcel, sender = link.send(tensors(6, 8.5, 0, 2, 0, 0), sender, context())
    assert modes(parcel) == ["coefficient", "dense"]
    assert parcel.blocks[0].fields[0] == pytest.approx(2.08)
    assert parcel.field_bytes == 4 + 4 * 8
    arrived, receiver = link.receive(parcel, receiver, context())
    np.testing.assert_allclose(arrived.values, [6.24, 8.32, 0, 2, 0, 0], rtol=1e-7)
    # look-back: a stays (3, 4), b is renewed; -3 times a has sin^2 = 0 and rho = -3
    parcel, sender = link.send(tensors(-9, -12, 0, -1, 0, 0), sender, context())
    assert modes(parcel) == ["coefficient", "coefficient"]
    arrived, receiver = link.receive(parcel, receiver, context())
    np.testing.assert_array_equal(arrived.values, [-9, -12, 0, -1, 0, 0])
    np.testing.assert_array_equal(receiver.values, [3, 4, 0, 2, 0, 0])


def test_one_number_for_the_whole_model() -> None:
    link = Lbgm(threshold=0.5, granularity="model")
    _, sender = link.send(tensors(1, 0, 0, 1, 0, 0), None, context())
    # <g, l> = 2 + 4 = 6, |l|^2 = 2, rho = 3; |g|^2 = 4 + 16 = 20, error = 1 - 36 / 40 = 0.1
    parcel, sender = link.send(tensors(2, 0, 0, 4, 0, 0), sender, context())
    assert [(block.mode, block.count) for block in parcel.blocks] == [(COEFFICIENT, 1), (COEFFICIENT, 0)]
    assert parcel.field_bytes == 4
    np.testing.assert_array_equal(link.delivered(parcel, sender, context()).values, [3, 0, 0, 3, 0, 0])


def test_residual_by_hand() -> None:
    link = Lbgm(threshold=0.6, residual=True)
    _, sender = link.send(tensors(1, 0, 1, 0, 0, 0), None, context())
    assert not sender.residual.values.any()
    # a: (2, 1) arrives as (2, 0), (0, 1) is left; next wanted (2, 1) + (0, 1) = (2, 2): sin^2 = 1/2, recycled as (2, 0)
    _, sender = link.send(tensors(2, 1, 1, 0, 0, 0), sender, context())
    np.testing.assert_array_equal(sender.residual.values, [0, 1, 0, 0, 0, 0])
    parcel, sender = link.send(tensors(2, 1, 1, 0, 0, 0), sender, context())
    assert modes(parcel) == ["coefficient", "coefficient"]
    np.testing.assert_array_equal(sender.residual.values, [0, 2, 0, 0, 0, 0])
    # (2, 1) + (0, 2) = (2, 3): sin^2 = 9/13 > 0.6, sent in full with all that waited
    parcel, sender = link.send(tensors(2, 1, 1, 0, 0, 0), sender, context())
    assert modes(parcel) == ["dense", "coefficient"]
    np.testing.assert_array_equal(link.delivered(parcel, sender, context()).values[:2], [2, 3])
    assert not sender.residual.values.any()


def test_separate_residuals_by_hand() -> None:
    link = Lbgm(threshold=0.6, codec=TopK(0.5), residual="separate")
    _, sender = link.send(tensors(2, 1, 1, 0, 0, 0), None, context())
    np.testing.assert_array_equal(sender.dropped.values, [0, 1, 0, 0, 0, 0])
    assert not sender.waiting.values.any()
    # a: (1, 1) + (0, 1) = (1, 2), of which Top-K keeps (0, 2): at a right angle to (2, 0), sent in full
    parcel, sender = link.send(tensors(1, 1, 1, 0, 0, 0), sender, context())
    assert modes(parcel)[1] == "coefficient"
    np.testing.assert_array_equal(sender.vectors.values, [0, 2, 1, 0, 0, 0])
    np.testing.assert_array_equal(sender.dropped.values, [1, 0, 0, 0, 0, 0])
    # b: Top-K keeps both of (1, 1): sin^2 to (1, 0) is 1/2, (1, 0) arrives and (0, 1) waits
    parcel, sender = link.send(tensors(0, 3, 1, 1, 0, 0), sender, context())
    np.testing.assert_array_equal(sender.waiting.values, [0, 0, 0, 1, 0, 0])
    # then (0, 0) + (0, 1) after the codec: at a right angle, sent in full, and nothing waits
    parcel, sender = link.send(tensors(0, 3, 0, 0, 0, 0), sender, context())
    np.testing.assert_array_equal(link.delivered(parcel, sender, context()).values, [0, 3, 0, 1, 0, 0])
    assert not sender.waiting.values.any()


# identities


@pytest.mark.slow
@given(st.lists(st.floats(-100, 100), min_size=12, max_size=12))
@settings(max_examples=200, deadline=None)
def test_the_rest_is_orthogonal_and_its_norm_is_the_error(numbers: list[float]) -> None:
    update, look_back = tensors(*numbers[:6]), tensors(*numbers[6:])
    rho, error = projection(update, look_back)
    assert 0 <= error <= 1
    g, back = update.values, look_back.values
    if np.linalg.norm(g) > 1e-3 and np.linalg.norm(back) > 1e-3:
        rest = g - rho * back
        assert abs(rest @ back) <= 1e-12 * np.linalg.norm(g) * np.linalg.norm(back)
        assert rest @ rest == pytest.approx(g @ g * error, rel=1e-9, abs=1e-12 * (g @ g))


def test_what_arrives_has_the_norm_of_the_projection() -> None:
    # the coefficient travels as float32; its error is of second order in the norm
    link = Lbgm(threshold=1.0)
    _, sender = link.send(drawn(1), None, context())
    parcel, after = link.send(drawn(2), sender, context())
    for name in ("a.weight", "b.weight"):
        update, look_back = pick(drawn(2), (name,)), pick(drawn(1), (name,))
        _, error = projection(update, look_back)
        rest = sub(update, pick(link.delivered(parcel, after, context()), (name,))).values
        assert rest @ rest == pytest.approx(update.values @ update.values * error, rel=1e-12)


def test_the_decision_knows_no_scale() -> None:
    for factor in (1e-30, 1e-3, -7.0, 1e30):
        for error in (projection(scale(drawn(2), factor), drawn(1)), projection(drawn(2), scale(drawn(1), factor))):
            assert error[1] == pytest.approx(projection(drawn(2), drawn(1))[1], rel=1e-12)


def test_a_negative_threshold_is_a_plain_link_bit_for_bit() -> None:
    for codec in (Dense(), TopK(0.5)):
        link, plain, sender = Lbgm(-1e-9, codec=codec), Plain(codec), None
        # the same update again has error 0, and is sent in full all the same
        for number in (1, 1, 2, 3):
            parcel, sender = link.send(drawn(number), sender, context())
            wanted, _ = plain.send(drawn(number), None, context())
            assert Envelope("x", 1, 1, parcels={"update": parcel}).to_bytes() == (
                Envelope("x", 1, 1, parcels={"update": wanted}).to_bytes()
            )
            assert is_equal(link.delivered(parcel, sender, context()), plain.delivered(wanted, None, context()))


@pytest.mark.parametrize("threshold", [1.0, 2.0, float("inf")])
@pytest.mark.parametrize("granularity", ["tensor", "model"])
def test_from_one_on_only_the_first_update_is_sent_in_full(threshold: float, granularity: str) -> None:
    link, sender = Lbgm(threshold, granularity), None
    for number in range(6):
        update = zeros(SCHEMA) if number == 4 else drawn(number)
        parcel, sender = link.send(update, sender, context())
        assert all(block.mode is COEFFICIENT for block in parcel.blocks) is (number > 0)
    np.testing.assert_array_equal(sender.vectors.values, drawn(0).values)


@pytest.mark.parametrize("residual", [True, "separate"])
def test_with_a_residual_all_that_was_wanted_arrives_or_waits(residual: bool | str) -> None:
    for codec in (Dense(), TopK(0.5)):
        link, sender, receiver = Lbgm(0.6, codec=codec, residual=residual), None, None
        wanted, came = np.zeros(SCHEMA.size), np.zeros(SCHEMA.size)
        kinds = set()
        for number in range(30):
            parcel, sender = link.send(drawn(number), sender, context(number))
            arrived, receiver = link.receive(parcel, receiver, context(number))
            kinds |= set(modes(parcel))
            wanted, came = wanted + drawn(number).values, came + to_dense(arrived).values
            held = sender.dropped.values + sender.waiting.values if residual == "separate" else sender.residual.values
            np.testing.assert_allclose(came + held, wanted, rtol=0, atol=1e-12)
        assert len(kinds) > 1  # not degenerate: some in full, some as a number


@pytest.mark.parametrize("granularity", ["tensor", "model"])
@pytest.mark.parametrize("codec", [Dense(), TopK(0.5)], ids=repr)
@pytest.mark.parametrize("residual", [False, "separate"])
def test_both_ends_hold_the_same_look_back(granularity: str, codec: object, residual: bool | str) -> None:
    link, sender, receiver = Lbgm(0.7, granularity, codec, residual), None, None
    for number in range(20):
        update = pick(drawn(number), ("b.weight",)) if number % 3 == 2 else drawn(number)
        parcel, sender = link.send(update, sender, context(number))
        arrived, receiver = link.receive(parcel, receiver, context(number))
        assert is_equal(sender.vectors, receiver)
        assert is_equal(arrived, link.delivered(parcel, sender, context(number)))
        assert arrived.schema == update.schema


def test_sparsify_first_then_project() -> None:
    # top_k keeps 5 of (5, 1) and 6 of (6, 5): the same direction, although the updates themselves turn
    link = Lbgm(0.0, codec=TopK(0.5))
    _, sender = link.send(tensors(5, 1, 0, 0, 0, 3), None, context())
    np.testing.assert_array_equal(sender.vectors.values, [5, 0, 0, 0, 0, 3])  # the decoded vector, not the update
    parcel, sender = link.send(tensors(6, 5, 1, 0, 0, 2), sender, context())
    assert modes(parcel)[0] == "coefficient"
    np.testing.assert_allclose(link.delivered(parcel, sender, context()).values[:2], [6, 0], rtol=1e-7)


def test_zero_has_error_one() -> None:
    assert projection(zeros(SCHEMA), drawn(1)) == (0.0, 1.0)
    assert projection(drawn(1), zeros(SCHEMA)) == (0.0, 1.0)
    # a look-back of zero stands for nothing, whatever the threshold: the tensor would never move again
    for threshold in (0.5, 2.0):
        _, sender = Lbgm(threshold).send(tensors(0, 0, 1, 1, 1, 1), None, context())
        parcel, _ = Lbgm(threshold).send(tensors(1, 2, 2, 2, 2, 2), sender, context())
        assert modes(parcel) == ["dense", "coefficient"]


# traps of public code


def test_dividing_by_the_norm_instead_of_its_square_is_another_vector() -> None:
    update, look_back = tensors(6, 8, 0, 0, 0, 0), tensors(3, 4, 0, 0, 0, 0)
    rho, error = projection(update, look_back)
    wrong = update.values @ look_back.values / np.linalg.norm(look_back.values)
    assert error == 0
    np.testing.assert_allclose(rho * look_back.values, update.values)
    assert np.linalg.norm(wrong * look_back.values) == pytest.approx(5 * np.linalg.norm(update.values))


def test_the_cosine_instead_of_its_square_decides_otherwise() -> None:
    def wrong_error(update: Tensors, look_back: Tensors) -> float:
        g, back = update.values, look_back.values
        return 1 - g @ back / (np.linalg.norm(g) * np.linalg.norm(back))

    link = Lbgm(0.2)
    _, sender = link.send(tensors(3, 4, 1, 0, 0, 0), None, context())
    # the opposite direction is a multiple too: sin^2 = 0, 1 - cos = 2
    opposite = tensors(-3, -4, 1, 0.6, 0, 0)
    assert wrong_error(pick(opposite, ("a.weight",)), pick(sender.vectors, ("a.weight",))) == pytest.approx(2)
    # and 1 - cos = 0.14 where sin^2 = 0.26: the wrong rule recycles what is too far away
    assert wrong_error(pick(opposite, ("b.weight",)), pick(sender.vectors, ("b.weight",))) < 0.2
    parcel, _ = link.send(opposite, sender, context())
    assert modes(parcel) == ["coefficient", "dense"]


def test_the_look_back_is_not_the_last_update() -> None:
    # each step turns by 20 degrees (sin^2 = 0.117 < 0.2); measured from the look-back the second is at 40 (0.413)
    link = Lbgm(0.2, "model")
    turned = [tensors(np.cos(a), np.sin(a), 0, 0, 0, 0) for a in np.deg2rad([0, 20, 40])]
    kinds, sender = [], None
    for update in turned:
        parcel, sender = link.send(update, sender, context())
        kinds.append(modes(parcel)[0])
    assert kinds == ["dense", "coefficient", "dense"]


# what is refused


def test_a_coefficient_cannot_be_decoded_without_the_link() -> None:
    link = Lbgm(1.0)
    _, sender = link.send(drawn(1), None, context())
    parcel, _ = link.send(drawn(2), sender, context())
    with pytest.raises(WireError, match="only the link lbgm holds"):
        parcel.decode(SCHEMA)
    with pytest.raises(WireError, match="before any full tensor"):
        link.receive(parcel, None, context())
    with pytest.raises(WireError, match="always sends a parcel"):
        link.receive(None, drawn(1), context())


def test_lying_counts_are_refused() -> None:
    link = Lbgm(1.0, "model")
    _, sender = link.send(drawn(1), None, context())
    parcel, _ = link.send(drawn(2), sender, context())
    orphan = replace(parcel, blocks=(Block(COEFFICIENT, 0, ()),) * 2)
    with pytest.raises(WireError, match="repeats a coefficient"):
        link.receive(orphan, sender.vectors, context())
    two = replace(parcel, blocks=(Block(COEFFICIENT, 2, (np.ones(2, "<f4"),)), parcel.blocks[1]))
    with pytest.raises(WireError, match="2 coefficients for one tensor"):
        Envelope.from_bytes(Envelope("x", 1, 1, parcels={"update": two}).to_bytes(), WHOLE)
    short = replace(parcel, blocks=(Block(COEFFICIENT, 1, ()), parcel.blocks[1]))
    with pytest.raises(WireError, match="early"):
        Envelope.from_bytes(Envelope("x", 1, 1, parcels={"update": short}).to_bytes(), WHOLE)


def test_what_is_no_number_goes_in_full_for_the_receiver_to_see() -> None:
    link = Lbgm(2.0)
    _, sender = link.send(drawn(1), None, context())
    for bad in (np.nan, np.inf):
        with np.errstate(invalid="ignore"):
            parcel, _ = link.send(tensors(bad, 1, 1, 1, 1, 1), sender, context())
        assert modes(parcel) == ["dense", "coefficient"]


def test_a_coefficient_beyond_float32_goes_in_full() -> None:
    link = Lbgm(0.5)
    _, sender = link.send(scale(drawn(1), 1e-30), None, context())
    parcel, _ = link.send(scale(drawn(1), 1e30), sender, context())
    assert modes(parcel) == ["dense", "dense"]


def test_a_residual_that_is_none_of_the_forms_is_told_all_of_them() -> None:
    with pytest.raises(ConfigError, match=r"residual: input should be a valid boolean.*, or .*'separate', got 'both'"):
        links.parse({"name": "lbgm", "residual": "both"}, "uplink.update")


def test_a_threshold_is_a_number() -> None:
    with pytest.raises(ConfigError, match=r"lbgm\.threshold must be a number, got nan"):
        Lbgm(float("nan"))


def test_a_residual_needs_a_codec_whose_errors_do_not_grow() -> None:
    Lbgm(codec=RandK(0.2))
    with pytest.raises(ConfigError, match=r"lbgm\.codec must be contractive"):
        Lbgm(codec=RandK(0.2), residual=True)
    with pytest.raises(ConfigError, match=r"lbgm\.codec must be contractive"):
        LbgmMethod(codec=RandK(0.2), residual=True)


def test_without_a_residual_none_is_remembered() -> None:
    _, sender = Lbgm(0.5, codec=TopK(0.5)).send(drawn(1), None, context())
    assert isinstance(sender, LookBack)
    assert sender.residual is None
