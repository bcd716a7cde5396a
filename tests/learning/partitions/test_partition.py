"""What every partition promises: one owner per example, a seed decides, refusals name the place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions import Partition, partitions
from fedreuse.learning.partitions.classes import Classes
from fedreuse.learning.partitions.dirichlet import Dirichlet
from fedreuse.learning.partitions.feature_shift import FeatureShift
from fedreuse.learning.partitions.iid import Iid
from fedreuse.learning.partitions.quantity import Quantity
from fedreuse.learning.partitions.shards import Shards
from fedreuse.learning.partitions.time_ordered import TimeOrdered
from tests.learning.partitions.dealt import LABELS, lists, of, rng

EVERY = ["classes", "client_table", "dirichlet", "feature_shift", "flower", "iid", "index_file", "natural", "quantity",
         "shards", "time_ordered"]  # fmt: skip


def test_registered_names() -> None:
    assert partitions.names() == [
        "classes",
        "client_table",
        "dirichlet",
        "feature_shift",
        "flower",
        "iid",
        "index_file",
        "natural",
        "quantity",
        "shards",
        "time_ordered",
    ]
    assert partitions.parse({"name": "dirichlet", "alpha": 0.5}, "task.partition") == Dirichlet(0.5)
    assert partitions.parse("iid", "task.partition") == Iid()


drawn_partitions = st.one_of(
    st.builds(Dirichlet, st.floats(0.001, 100), st.integers(1, 5), on_small=st.just("move")),
    st.builds(Iid, st.integers(1, 5)),
    st.builds(Shards, st.integers(1, 5)),
    st.builds(Quantity, st.floats(0.001, 100), st.integers(1, 5), on_small=st.just("move")),
    st.builds(TimeOrdered, st.integers(1, 5)),
    st.just(FeatureShift(Iid(), noise=0.1)),
)


@pytest.mark.slow
@settings(deadline=None)
@given(
    drawn_partitions,
    st.integers(1, 20),
    st.lists(st.integers(0, 6), min_size=100, max_size=300),
    st.integers(0, 99),
)
def test_every_example_has_one_owner_and_a_seed_decides_which(
    partition: Partition, num_clients: int, labels: list[int], seed: int
) -> None:
    index = partition.split(of(np.array(labels)), num_clients, rng(seed))
    assert index.num_clients == num_clients
    assert sorted(index.indices.tolist()) == list(range(len(labels)))
    assert all(own == sorted(own) and own for own in lists(index))
    assert index.digest == partition.split(of(np.array(labels)), num_clients, rng(seed)).digest


SKEWED = [Dirichlet(0.5), Iid(), Shards(), Dirichlet(0.1, on_small="move"), Quantity(0.5), Classes(2)]


@pytest.mark.parametrize("partition", SKEWED)
def test_another_seed_is_another_partition(partition: Partition) -> None:
    assert partition.split(of(LABELS), 6, rng(1)).digest != partition.split(of(LABELS), 6, rng(2)).digest


ALONE = [Dirichlet(1.0, min_examples=1), Iid(), Shards(1), Quantity(1.0, min_examples=1), Classes(), TimeOrdered()]


@pytest.mark.parametrize("partition", ALONE)
def test_more_clients_than_examples_are_refused(partition: Partition) -> None:
    with pytest.raises(
        ConfigError, match=r"task\.partition: 601 clients \(task\.clients\).*there are 600; take at most 600"
    ):
        partition.split(of(LABELS), 601, rng())


@pytest.mark.parametrize("partition", [Dirichlet(1.0), Iid(), Shards(), Quantity(1.0), Classes(), TimeOrdered()])
def test_no_clients_are_refused(partition: Partition) -> None:
    with pytest.raises(ConfigError, match=r"task\.clients must be at least 1, got 0"):
        partition.split(of(LABELS), 0, rng())


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "dirichlet", "alpha": 0},
        {"name": "dirichlet", "alpha": float("nan")},
        {"name": "dirichlet", "alpha": float("inf")},
        {"name": "dirichlet", "alpha": 1, "min_examples": 0},
        {"name": "dirichlet", "alpha": 1, "max_redraws": -1},
        {"name": "dirichlet", "alpha": 1, "on_small": "drop"},
        {"name": "iid", "min_examples": 0},
        {"name": "shards", "shards_per_client": 0},
        {"name": "shards", "min_examples": 0},
        {"name": "quantity", "alpha": 0},
        {"name": "quantity", "alpha": 1, "min_examples": 0},
        {"name": "quantity", "alpha": 1, "max_redraws": -1},
        {"name": "classes", "per_client": 0},
        {"name": "classes", "min_examples": 0},
        {"name": "natural", "min_examples": 0},
        {"name": "natural", "min_classes": 0},
        {"name": "natural", "on_small": "move"},
        {"name": "time_ordered", "min_examples": 0},
        {"name": "feature_shift"},
        {"name": "feature_shift", "noise": -1},
        {"name": "feature_shift", "rotations": [float("nan")]},
        {"name": "feature_shift", "noise": 1, "partition": {"name": "feature_shift", "noise": 1}},
        {"name": "index_file", "path": "clients.txt"},
        {"name": "index_file", "path": "clients.json", "min_examples": 0},
    ],
)
def test_wrong_fields_are_refused_with_their_place(spec: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"^task\.partition.*, got "):
        partitions.parse(spec, "task.partition")
