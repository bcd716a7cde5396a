"""EF21's link: an estimate at both ends, by hand; its contraction; the decoded difference, not the meant one."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.link import parse_link
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.tensors import is_equal, to_dense
from tests.compression.links.vectors import PAIR, Rounded, context, line, pair, talk


def test_three_sends_by_hand() -> None:
    # k = 1 of 2. (4, 3): 4 is sent, g = (4, 0). (4, 3) again: lacks (0, 3), g = (4, 3).
    # (1, 3): lacks (-3, 0), g = (1, 3)
    told = talk(Ef21(TopK(0.5)), [line(4, 3), line(4, 3), line(1, 3)])
    assert told == [(True, [4, 0]), (True, [4, 3]), (True, [1, 3])]


def test_the_estimate_follows_what_was_decoded() -> None:
    # a codec that rounds: 0.4 - 0 -> 0; 0.8 - 0 -> 1; 0.6 - 1 = -0.4 -> 0. From what was meant, each would be exact
    told = talk(Ef21(Rounded()), [line(0.4), line(0.8), line(0.6)])
    assert [arrived for _, arrived in told] == [[0.0], [1.0], [1.0]]


def test_a_lossless_codec_delivers_the_update() -> None:
    rng = np.random.default_rng(0)
    for update, (_, arrived) in zip(
        updates := [pair(rng.normal(size=10)) for _ in range(20)], talk(Ef21(Dense()), updates), strict=True
    ):
        np.testing.assert_allclose(arrived, update.values, rtol=1e-12, atol=1e-14)


def test_contraction_towards_a_fixed_update() -> None:
    # |g - x|^2 falls by at least 1 - k/d, tensor by tensor: k/d = 1/6 for a, 1/4 for b
    link, update, state = Ef21(TopK(0.25)), pair(np.random.default_rng(1).normal(size=10)), None
    lacking = {name: float(np.sum(update[name] ** 2)) for name in ("a", "b")}
    for _ in range(12):
        _, state = link.send(update, state, context(PAIR))
        left = {name: float(np.sum((update[name] - state[name]) ** 2)) for name in ("a", "b")}
        assert left["a"] <= 5 / 6 * lacking["a"] + 1e-15
        assert left["b"] <= 3 / 4 * lacking["b"] + 1e-15
        lacking = left
    assert max(lacking.values()) < 1e-15


def test_both_ends_hold_the_same_bits() -> None:
    link, rng = Ef21(TopK(0.3)), np.random.default_rng(2)
    sender = receiver = None
    for _ in range(30):
        parcel, sender = link.send(pair(rng.normal(size=10)), sender, context(PAIR))
        arrived, receiver = link.receive(parcel, receiver, context(PAIR))
        assert is_equal(sender, receiver)
        assert is_equal(arrived, receiver)


def test_bytes_are_the_codecs() -> None:
    update = pair(np.random.default_rng(3).normal(size=10))
    parcel, _ = Ef21(TopK(0.3)).send(update, None, context(PAIR))
    assert parcel.field_bytes == TopK(0.3).encode(update, PAIR, np.random.default_rng(0)).field_bytes
    assert len(to_dense(parcel.decode(PAIR)).values) == 10


def test_silence_is_refused() -> None:
    with pytest.raises(WireError, match="always sends a parcel"):
        Ef21().receive(None, pair(range(10)), context(PAIR))


def test_by_name() -> None:
    assert parse_link({"name": "ef21", "codec": "dense"}, "uplink.update") == Ef21(Dense())


def test_a_codec_that_expands_is_refused() -> None:
    for name in ("ef21", "clag", "three_pc"):
        with pytest.raises(ConfigError, match=rf"{name}\.codec must be contractive"):
            parse_link({"name": name, "codec": {"name": "rand_k", "ratio": 0.2}}, "uplink.update")
    parse_link({"name": "three_pc", "variant": "v2", "base": "rand_k"}, "uplink.update")  # Q may be unbiased
