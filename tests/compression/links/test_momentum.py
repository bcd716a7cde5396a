"""Momentum before a link: numbers by hand, what it reduces to, parts, and the noise that it takes out."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.link import parse_link
from fedreuse.compression.links.momentum import Momentum
from fedreuse.compression.links.packed import PackedLink
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.tensors import is_equal, pick
from tests.compression.links.vectors import PAIR, context, line, pair, talk


def test_three_sends_by_hand() -> None:
    # eta 1/2, one of two. (4, 3): v = (4, 3), 4 is sent, g = (4, 0). (0, 1): v = (2, 2), lacks (-2, 2), the first of
    # equals: g = (2, 0). (2, 6): v = (2, 4), lacks (0, 4), g = (2, 4)
    told = talk(Momentum(Ef21(TopK(0.5)), 0.5), [line(4, 3), line(0, 1), line(2, 6)])
    assert told == [(True, [4, 0]), (True, [2, 0]), (True, [2, 4])]


def test_with_eta_one_it_is_the_other_link() -> None:
    rng = np.random.default_rng(0)
    updates = [pair(rng.normal(size=10)) for _ in range(8)]
    assert talk(Momentum(Ef21(TopK(0.3)), 1.0), updates) == talk(Ef21(TopK(0.3)), updates)


def test_what_arrives_is_the_moving_average_if_nothing_is_lost() -> None:
    rng = np.random.default_rng(1)
    updates = [pair(rng.normal(size=10)) for _ in range(6)]
    average = updates[0].values
    for update, (_, arrived) in zip(updates, talk(Momentum(Plain(Dense()), 0.2), updates), strict=True):
        average = 0.8 * average + 0.2 * update.values if update is not updates[0] else average
        np.testing.assert_allclose(arrived, average, rtol=1e-14)


@pytest.mark.slow
def test_the_noise_of_updates_is_averaged_out_before_it_is_compressed() -> None:
    # updates x + noise: the estimate of EF21 swings with them, the average's error is eta / (2 - eta) of theirs
    rng, x = np.random.default_rng(2), np.linspace(-1, 1, 10)
    updates = [pair(x + rng.normal(size=10)) for _ in range(400)]
    errors = [
        np.mean([np.sum((np.array(arrived) - x) ** 2) for _, arrived in talk(link, updates)[100:]])
        for link in (Ef21(TopK(0.5)), Momentum(Ef21(TopK(0.5)), 0.1))
    ]
    assert errors[1] < errors[0] / 5


def test_what_is_absent_waits() -> None:
    link = Momentum(Plain(Dense()), 0.5)
    _, state = link.send(pair(np.ones(10)), None, context(PAIR))
    _, state = link.send(pick(pair(np.full(10, 3.0)), ("b",)), state, context(PAIR))
    assert state.average["a"].tolist() == np.ones((3, 2)).tolist()
    assert state.average["b"].tolist() == [2, 2, 2, 2]


def test_the_receiver_is_the_other_links() -> None:
    link, rng = Momentum(Ef21(TopK(0.3)), 0.3), np.random.default_rng(3)
    sender = receiver = None
    for _ in range(10):
        parcel, sender = link.send(pair(rng.normal(size=10)), sender, context(PAIR))
        _, receiver = link.receive(parcel, receiver, context(PAIR))
        assert is_equal(sender.inner, receiver)


def test_by_name_and_mistakes() -> None:
    link = parse_link({"name": "momentum", "eta": 0.3, "link": {"name": "ef21", "codec": "dense"}}, "uplink.update")
    assert link == Momentum(Ef21(Dense()), 0.3)
    for eta in (0, 1.5):
        with pytest.raises(ConfigError, match=r"momentum\.eta must be in \(0, 1\]"):
            Momentum(eta=eta)
    for shared in (Broadcast(TopK(0.3)), PackedLink(Broadcast(TopK(0.3)))):
        with pytest.raises(ConfigError, match=r"momentum\.link must send .* got '(broadcast|packed)'"):
            Momentum(shared)
