"""Natural clients: everybody keeps what is theirs, and who is too small is named."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.natural import Natural
from tests.learning.partitions.dealt import lists, of, rng

VISITS = Examples(
    labels=np.array([0, 1, 0, 0, 1, 1]), clients=np.array([2, 0, 2, 0, 1, 2]), names=np.array(["ada", "bo", "cy"])
)


def test_everybody_keeps_what_is_theirs() -> None:
    index = Natural(min_examples=1).split(VISITS, 3, rng())
    assert lists(index) == [[1, 3], [4], [0, 2, 5]]


def test_small_clients_are_refused_by_name_or_left_out() -> None:
    with pytest.raises(
        ConfigError, match=r"client 1 \('bo'\) has too few examples \(1, natural\.min_examples is 2\); leave"
    ):
        Natural().split(VISITS, 3, rng())
    assert lists(Natural(on_small="drop").split(VISITS, 2, rng())) == [[1, 3], [0, 2, 5]]
    with pytest.raises(ConfigError, match=r"2 natural clients \(1 smaller ones left out\).* set task\.clients: 2"):
        Natural(on_small="drop").split(VISITS, 3, rng())


def test_clients_with_one_class() -> None:
    pure = Examples(np.array([0, 0, 1, 0]), np.array([0, 0, 1, 1]))
    assert Natural().split(pure, 2, rng()).num_clients == 2
    with pytest.raises(ConfigError, match=r"client 0 has too few classes \(1, natural\.min_classes is 2\)"):
        Natural(min_classes=2).split(pure, 2, rng())
    assert lists(Natural(min_classes=2, on_small="drop").split(pure, 1, rng())) == [[2, 3]]


def test_the_number_of_clients_is_told() -> None:
    with pytest.raises(ConfigError, match=r"3 natural clients, but task\.clients is 50; set task\.clients: 3"):
        Natural(min_examples=1).split(VISITS, 50, rng())


def test_data_without_clients_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"does not say which client .*task\.client_column"):
        Natural().split(of([0, 1]), 1, rng())


def test_clients_are_counted_in_the_data() -> None:
    assert Natural(min_examples=1).count_clients(VISITS) == 3
    assert Natural(on_small="drop").count_clients(VISITS) == 2
    with pytest.raises(ConfigError, match="too few examples"):
        Natural().count_clients(VISITS)
