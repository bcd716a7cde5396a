"""EControl's link: numbers by hand, EF21 as a special case, and that no part of an update is lost."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.econtrol import EControl
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.link import parse_link
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.tensors import is_equal
from tests.compression.links.vectors import PAIR, context, line, pair, talk


def test_three_sends_by_hand() -> None:
    # eta 1/2, one of two. (4, 3): q = (4, 0), h = (4, 0), e = (0, 3). (4, 3): lacks (0, 3), with e / 2 (0, 4.5) is
    # sent, h = (4, 4.5), e = (0, 3 + 3 - 4.5) = (0, 1.5). (4, 3): lacks (0, -1.5), with e / 2 -0.75 is sent,
    # h = (4, 3.75), e = (0, 1.5 - 1.5 + 0.75) = (0, 0.75)
    told = talk(EControl(TopK(0.5), 0.5), [line(4, 3), line(4, 3), line(4, 3)])
    assert told == [(True, [4, 0]), (True, [4, 4.5]), (True, [4, 3.75])]


def test_with_eta_zero_it_is_ef21() -> None:
    rng = np.random.default_rng(0)
    updates = [pair(rng.normal(size=10)) for _ in range(8)]
    assert talk(EControl(TopK(0.3), 0.0), updates) == talk(Ef21(TopK(0.3)), updates)


def test_all_that_arrives_and_the_error_make_up_all_updates() -> None:
    # e_T = sum (delta_t - h_{t+1}): what EF21 forgets is kept here
    link, rng = EControl(TopK(0.3), 0.2), np.random.default_rng(1)
    sender = receiver = None
    sent, arrived = np.zeros(10), np.zeros(10)
    for _ in range(15):
        update = pair(rng.normal(size=10))
        parcel, sender = link.send(update, sender, context(PAIR))
        got, receiver = link.receive(parcel, receiver, context(PAIR))
        sent, arrived = sent + update.values, arrived + got.values
        assert is_equal(sender.estimate, receiver)
    np.testing.assert_allclose(arrived + sender.error.values, sent, rtol=1e-12)


def test_a_fixed_update_is_found() -> None:
    update = pair(np.random.default_rng(2).normal(size=10))
    told = talk(EControl(TopK(0.3), 0.1), [update] * 300)
    np.testing.assert_allclose(told[-1][1], update.values, atol=1e-3)


def test_silence_and_codecs_that_expand_are_refused() -> None:
    with pytest.raises(WireError, match="always sends a parcel"):
        EControl().receive(None, pair(range(10)), context(PAIR))
    with pytest.raises(ConfigError, match=r"econtrol\.codec must be contractive"):
        EControl(RandK(0.2))
    for eta in (-0.1, 1.5):
        with pytest.raises(ConfigError, match=r"econtrol\.eta must be in \[0, 1\]"):
            EControl(eta=eta)
    assert parse_link({"name": "econtrol", "codec": "dense"}, "uplink.update") == EControl(Dense())
