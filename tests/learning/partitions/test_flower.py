"""Partitioners of flwr-datasets, where it is installed; and what is said where it is not."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions.flower import Flower
from tests.learning.partitions.dealt import LABELS, lists, of, rng

installed = pytest.mark.skipif(find_spec("flwr_datasets") is None, reason="flwr-datasets is not installed")
DIRICHLET = {"num_partitions": 6, "partition_by": "label", "alpha": 0.5, "seed": 3, "min_partition_size": 5}


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flwr_datasets.partitioner", None)
    with pytest.raises(ConfigError, match=r"flower needs the package flwr-datasets .*pip install flwr-datasets"):
        Flower("IidPartitioner", {"num_partitions": 2}).split(of(LABELS), 2, rng())


@installed
@pytest.mark.filterwarnings("ignore")
def test_the_examples_are_those_that_flower_deals() -> None:
    from datasets import Dataset
    from flwr_datasets.partitioner import DirichletPartitioner

    theirs = DirichletPartitioner(**DIRICHLET)
    theirs.dataset = Dataset.from_dict({"label": LABELS, "number": np.arange(600)})
    index = Flower("DirichletPartitioner", DIRICHLET).split(of(LABELS), 6, rng())
    assert lists(index) == [sorted(theirs.load_partition(client)["number"]) for client in range(6)]


@installed
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("partitioner", "options", "message"),
    [
        ("DirichletPartitoner", DIRICHLET, "there is no 'DirichletPartitoner'; did you mean 'DirichletPartitioner'"),
        ("DirichletPartitioner", {**DIRICHLET, "num_partitions": 5}, r"makes 5 partitions, but task\.clients is 6"),
        ("DirichletPartitioner", {**DIRICHLET, "partition_by": "colour"}, "refuses .*colour"),
        ("IidPartitioner", {"clients": 6}, "refuses .*clients"),
    ],
)
def test_refusals(partitioner: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Flower(partitioner, options).split(of(LABELS), 6, rng())
