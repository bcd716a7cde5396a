"""A ratio that warms up: factors by hand, what it reduces to, and mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.fit import Fit
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.link import parse_link
from fedreuse.compression.links.momentum import Momentum
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.links.warm_up import WarmUp
from fedreuse.core.errors import ConfigError
from fedreuse.testing.quadratic import QuadraticFederation
from tests.compression.links.vectors import PAIR, context, line, pair, talk
from tests.federation import NOISY, build, is_same


def test_factors_by_hand() -> None:
    # from 16 to 1 over four rounds: 16, 16^(3/4), 16^(1/2), 16^(1/4), and 1 from round 5 on
    warm = WarmUp(Plain(TopK(0.01)), rounds=4, first=16.0)
    assert [warm.factor(number) for number in range(1, 8)] == pytest.approx([16, 8, 4, 2, 1, 1, 1], rel=1e-15)
    # from 9 to a quarter of the usual over one round
    assert [WarmUp(rounds=1, first=9.0, rest=0.25).factor(number) for number in (1, 2, 3)] == [9, 0.25, 0.25]


def test_more_is_sent_at_first_and_the_rest_waits() -> None:
    # an eighth of eight is one; in round 1 four times as many: 8, 7, 6, 5 go, (4, 3, 2, 1) waits, of which 4 goes next
    warm, start = WarmUp(ErrorFeedback(TopK(1 / 8)), rounds=1, first=4.0), line(8, 7, 6, 5, 4, 3, 2, 1)
    parcel, state = warm.send(start, None, context(start.schema))
    assert parcel is not None
    assert warm.receive(parcel, None, context(start.schema))[0]["a"].tolist() == [8, 7, 6, 5, 0, 0, 0, 0]
    parcel, state = warm.send(line(*[0.0] * 8), state, replace(context(start.schema), round_number=2))
    assert parcel is not None
    assert parcel.decode(start.schema)["a"].tolist() == [0, 0, 0, 0, 4, 0, 0, 0]
    assert state["a"].tolist() == [0, 0, 0, 0, 0, 3, 2, 1]


def test_with_factors_of_one_it_is_the_other_link() -> None:
    rng = np.random.default_rng(0)
    updates = [pair(rng.normal(size=10)) for _ in range(6)]
    for link in (ErrorFeedback(TopK(0.3)), Momentum(ErrorFeedback(TopK(0.3)), 0.3), Delta(TopK(0.3))):
        assert talk(WarmUp(link, rounds=3, first=1.0), updates) == talk(link, updates)


def test_in_a_federation_factors_of_one_change_nothing_and_others_send_more() -> None:
    federation, link = QuadraticFederation.draw(training=NOISY), {"name": "error_feedback", "codec": "top_k"}
    bare, same, more = (
        federation.play(build("fedavg", uplink), 6)
        for uplink in (
            link,
            {"name": "warm_up", "first": 1.0, "link": link},
            {"name": "warm_up", "first": 4.0, "rounds": 3, "link": link},
        )
    )
    assert is_same(bare.model, same.model)
    sent = [
        [sum(row.group_bytes("update") for row in one.ledger.rows if row.round_number == number) for number in (1, 5)]
        for one in (bare, more)
    ]
    assert sent[1][0] > sent[0][0]
    assert sent[1][1] == sent[0][1]


def test_bytes_of_fit_are_what_grows() -> None:
    link = WarmUp(ErrorFeedback(Fit(TopK(0.1), bytes=40)), rounds=1, first=2.0)
    numbers = pair(np.random.default_rng(1).normal(size=10))
    sizes = []
    for number in (1, 2):
        parcel, _ = link.send(numbers, None, replace(context(PAIR), round_number=number))
        assert parcel is not None
        sizes.append(parcel.body_bytes)
    assert sizes[1] <= 40 < sizes[0] <= 80


def test_what_is_shared_is_made_with_the_ratio_of_the_round() -> None:
    # (1, 2, 3, 4) becomes (2, 4, 6, 9): of the change (1, 2, 3, 5) half is broadcast, or with twice the ratio all of it
    start, here = line(1, 2, 3, 4), context(line(1, 2, 3, 4).schema)
    for factor, estimate in ((1.0, [1, 2, 6, 9]), (2.0, [2, 4, 6, 9])):
        link = WarmUp(Broadcast(TopK(0.5)), rounds=4, first=factor, rest=factor)
        shared = link.share(start, None, here)
        shared = link.share(line(2, 4, 6, 9), shared, replace(here, round_number=2))
        assert shared.estimate["a"].tolist() == estimate


def test_by_name_and_mistakes() -> None:
    spec = {"name": "warm_up", "rounds": 5, "link": {"name": "delta", "codec": "top_k"}}
    assert parse_link(spec, "downlink.model") == WarmUp(Delta(TopK()), rounds=5)
    with pytest.raises(ConfigError, match=r"warm_up\.rounds must be at least 1"):
        WarmUp(rounds=0)
    for name in ("first", "rest"):
        with pytest.raises(ConfigError, match=rf"warm_up\.{name} must be positive"):
            WarmUp(**{name: 0.0})
    for link in (Plain(Dense()), parse_link({"name": "laq", "bits": 4}, "uplink.update")):
        with pytest.raises(ConfigError, match=r"warm_up\.link must have a codec with a ratio"):
            WarmUp(link)
