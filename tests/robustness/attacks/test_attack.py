"""Who is bad, what is honest unless said otherwise, and the ranges of every attack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.averaging import Averaging
from fedreuse.robustness.attacks.attack import Attack, attacks
from fedreuse.robustness.attacks.sign_flip import SignFlip
from tests.robustness.attacks.played import play, same


def test_the_share_is_of_all_clients_and_the_seed_says_who() -> None:
    first = Attack(0.3).clients(10, 1)
    assert len(first) == 3
    assert first == Attack(0.3).clients(10, 1)
    assert any(first != Attack(0.3).clients(10, seed) for seed in range(2, 6))
    assert Attack(0.1).clients(10, 1) < Attack(0.2).clients(10, 1) < first  # more bad clients are those and others
    assert Attack(0.25).clients(6, 1) == Attack(0.3).clients(6, 1)  # whole clients: 1.5 and 1.8 are two


def test_nobody_bad_is_no_attack() -> None:
    assert same(play(Averaging(), SignFlip(0.0), 2).model, play(Averaging(), None, 2).model)


def test_what_an_attack_does_not_say_is_honest() -> None:
    attack, rng = Attack(), np.random.default_rng(0)
    inputs, labels = np.zeros((2, 3)), np.array([0, 1])
    assert attack.poison(inputs, labels, 2, rng) == (inputs, labels)
    assert attack.claim(7) == 7
    assert attack.goal(inputs, labels) is None
    assert same(play(Averaging(), attack).model, play(Averaging()).model)
    with pytest.raises(NotImplementedError, match="collude"):
        attack.collude([], 1)


@pytest.mark.parametrize("name", attacks.names())
def test_every_attack_bounds_its_share(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^attack\.bad must be in \[0, 1\), got 1\.0$"):
        attacks.parse({"name": name, "bad": 1.0}, "attack")
    assert attacks.parse({"name": name, "bad": 0.1}, "attack").bad == 0.1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"name": "scaled", "score": 3}, "score must be in"),
        ({"name": "gaussian", "length": 0}, "length must be above 0"),
        ({"name": "backdoor", "target": -1}, "target must not be negative"),
        ({"name": "backdoor", "size": 0}, "size must be at least 1"),
        ({"name": "backdoor", "share": 0}, "share must be in"),
        ({"name": "backdoor", "boost": 0}, "boost must be above 0"),
        ({"name": "inner_product", "factor": -1}, "factor must be above 0"),
        ({"name": "free_rider", "mode": "sleep"}, "replay"),
        ({"name": "false_counts", "times": 0}, "times must be from 1"),
    ],
)
def test_ranges(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        attacks.parse(spec, "attack")
