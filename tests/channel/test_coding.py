"""Codings: names, settings, and mistakes in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedreuse import ClientChannel, ConfigError, ServerChannel
from fedreuse.channel.coding import Exact, LeanCoding, OwnLinks, TopKCoding, parse_coding


def test_names_and_mappings() -> None:
    assert parse_coding("exact") == Exact()
    assert parse_coding({"name": "top_k", "ratio": 0.1}) == TopKCoding(0.1)
    assert parse_coding({"name": "lean", "rounds": 9, "clients": 3}) == LeanCoding(9, 3)
    assert parse_coding({"uplink": {"update": "top_k"}}) == OwnLinks({"update": "top_k"})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("exakt", "did you mean 'exact'"),
        (7, "a name or a mapping expected"),
        ({"name": "top_k", "ratoi": 0.1}, "coding.ratoi: unknown key; did you mean 'ratio'"),
        ({"name": "top_k", "ratio": 0}, "ratio"),
        ({"name": "lean", "clients": 3}, "coding.rounds: missing"),
        ({"name": "lean", "rounds": 0, "clients": 3}, "coding.rounds must be at least 1"),
        ({"name": "lean", "rounds": 5, "clients": 3, "cohort": 4}, "coding.cohort must be from 1 to 3"),
        ({"uplink": {"update": "topk"}}, "uplink.update: 'topk' is neither a link nor a codec"),
        ({"uplink": {"model": "top_k"}}, "sends no such group"),
        ({"downlink": {"model": "top_k"}}, "would set the coordinates it drops to zero"),
        ({"downlink": {"model": "broadcast"}}, "broadcast keeps one state for all receivers"),
        ({"uplink": {"buffers": "error_feedback"}}, "turns them negative"),
    ],
)
def test_mistakes_are_named(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ServerChannel(spec)


def test_a_budget_that_the_first_contacts_exceed_is_refused() -> None:
    server = ServerChannel({"name": "lean", "rounds": 3, "clients": 2, "budget": 0.02})
    with pytest.raises(ConfigError, match=r"method.budget must be from 0\.\d+, the smallest"):
        server.encode({"w": np.zeros(1000, np.float32)}, "a")


def test_a_budget_is_kept_without_the_agreement() -> None:
    rng, rounds, size = np.random.default_rng(0), 40, 20_000
    server = ServerChannel({"name": "lean", "rounds": rounds, "clients": 1, "budget": 0.05})
    client, model, total = ClientChannel("a"), {"w": rng.normal(size=size).astype(np.float32)}, 0
    for _ in range(rounds):
        request = server.encode(model, "a")
        received = client.decode(request)
        reply = client.encode({"w": received["w"] + rng.normal(size=size).astype(np.float32)})
        model = server.decode(reply, "a")
        total += len(request) + len(reply)
    assert total <= 0.05 * rounds * 2 * 4 * size + 1000  # the agreement, and eight bytes for each frame


def test_links_without_memory_get_the_agreement_once() -> None:
    server, client, model = ServerChannel({}), ClientChannel("a"), {"w": np.zeros(4, np.float32)}
    lengths = []
    for _ in range(3):
        request = server.encode(model, "a")
        server.decode(client.encode(client.decode(request)), "a")
        lengths.append(len(request))
    assert lengths[0] > lengths[1] == lengths[2]
