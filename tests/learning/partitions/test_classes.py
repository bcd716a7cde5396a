"""Label skew by classes per client: as many classes as asked, every class with clients, every class shared evenly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions.classes import Classes
from tests.learning.partitions.dealt import LABELS, of, rng


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.integers(1, 10), st.integers(1, 30), st.integers(0, 99))
def test_everybody_has_as_many_classes_and_classes_are_shared_evenly(per_client: int, clients: int, seed: int) -> None:
    if per_client * clients < 10:
        per_client = 10
    index = Classes(per_client).split(of(LABELS), clients, rng(seed))
    assert sorted(index.indices.tolist()) == list(range(600))
    counts = np.stack([np.bincount(LABELS[index.of(client)], minlength=10) for client in range(clients)])
    assert ((counts > 0).sum(axis=1) == per_client).all()
    holders = (counts > 0).sum(axis=0)
    assert holders.max() - holders.min() <= 1
    for one in counts.T:
        assert one[one > 0].max() - one[one > 0].min() <= 1


@pytest.mark.parametrize(
    ("per_client", "clients", "message"),
    [
        (11, 4, r"per_client is 11, but the training examples have 10 classes; lower it to at most 10"),
        (2, 4, r"4 clients .* 2 classes each do not cover the 10 classes; take at least 5 clients, or per_"),
        (10, 100, r"class 0 has 60 examples for 100 clients; take fewer clients"),
    ],
)
def test_what_cannot_be_dealt_is_refused(per_client: int, clients: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Classes(per_client).split(of(LABELS), clients, rng())


def test_a_minimum_holds() -> None:
    with pytest.raises(ConfigError, match="below min_examples 55"):
        Classes(1, min_examples=55).split(of([0] * 105 + [1] * 5), 2, rng())
