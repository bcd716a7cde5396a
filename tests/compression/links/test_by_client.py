"""A link for each client: delegation, what one link alone gives, and mistakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.by_client import ByClient
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.link import links, parse_link
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain
from fedreuse.testing.quadratic import QuadraticFederation
from tests.compression.links.vectors import context, line, pair, talk
from tests.federation import NOISY, build, is_same


def test_each_client_has_its_own_ratio() -> None:
    # client 0 sends one of four numbers, clients 1 and 2 send two
    link = ByClient((ErrorFeedback(TopK(0.25)), ErrorFeedback(TopK(0.5))), (0, 1, 1))
    start = line(4, 3, 2, 1)
    here = context(start.schema)
    arrived = []
    for client in range(3):
        at = replace(here, client=client)
        parcel, _ = link.send(start, None, at)
        arrived.append(link.receive(parcel, None, at)[0]["a"].tolist())
    assert arrived == [[4, 0, 0, 0], [4, 3, 0, 0], [4, 3, 0, 0]]


@pytest.mark.parametrize("inner", [ErrorFeedback(TopK(0.3)), Delta(TopK(0.3), start="initial"), Plain(TopK(0.3))])
def test_with_one_link_it_is_that_link(inner: Any) -> None:
    rng = np.random.default_rng(0)
    updates = [pair(rng.normal(size=10)) for _ in range(4)]
    around = ByClient((inner,), (0,))
    assert talk(around, updates) == talk(inner, updates)
    for name in ("has_memory", "uses_reference", "drops_coordinates", "sends_shared"):
        assert getattr(around, name) == getattr(inner, name)
    here = context(updates[0].schema)
    parcel, state = inner.send(updates[0], None, here)
    assert np.array_equal(around.delivered(parcel, state, here).values, inner.delivered(parcel, state, here).values)
    assert (around.held(state, here) is None) == (inner.held(state, here) is None)


def test_in_a_federation_equal_links_change_nothing() -> None:
    federation, link = QuadraticFederation.draw(training=NOISY), {"name": "error_feedback", "codec": "top_k"}
    each = {"name": "by_client", "links": [link, link], "of": [client % 2 for client in range(64)]}
    bare, same = (federation.play(build("fedavg", uplink), 5) for uplink in (link, each))
    assert is_same(bare.model, same.model)


def test_written_and_read_again() -> None:
    link = ByClient((ErrorFeedback(TopK(0.25)), Plain(TopK(0.5))), (0, 1, 1))
    assert parse_link(named_plain(links, link), "uplink.update") == link
    assert parse_link({"name": "by_client", "links": ["error_feedback"], "of": [0]}, "x") == ByClient(
        (ErrorFeedback(),), (0,)
    )


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match=r"by_client\.links must not be empty"):
        ByClient((), ())
    with pytest.raises(ConfigError, match=r"by_client\.of must name links from 0 to 0, got \[2, -1\]"):
        ByClient((ErrorFeedback(),), (0, 2, -1))
    with pytest.raises(ConfigError, match=r"by_client\.links must not send the same to all"):
        ByClient((Broadcast(TopK(0.5)),), (0,))
    with pytest.raises(ConfigError, match=r"has 1 entries, none for client 4"):
        ByClient((ErrorFeedback(),), (0,)).link_of(4)
    with pytest.raises(ConfigError, match=r"uplink\.update\.links: a list of links expected, got 'top_k'"):
        parse_link({"name": "by_client", "links": "top_k", "of": [0]}, "uplink.update")
