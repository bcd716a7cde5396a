"""Objects of a session as parts of a configuration: names of networks, and data stored once by content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.studies.objects import SESSION, named_network, stored_data


def test_networks_get_the_name_under_which_they_are_found() -> None:
    assert named_network(None) == (None, False)
    assert named_network("mlp") == ({"name": "mlp"}, False)
    assert named_network({"name": "mlp", "hidden": [4]}) == ({"name": "mlp", "hidden": [4]}, False)

    def make(num_classes: int) -> nn.Module:
        return nn.Linear(2, num_classes)

    network, is_local = named_network(make)
    assert network is not None
    assert is_local
    assert network["name"].startswith(f"{SESSION}:make_")
    assert named_network(make) == (network, True), "the same code has the same name"
    with pytest.raises(ConfigError, match="a torch module, a class or a function"):
        named_network(3)


def test_an_instance_is_named_by_its_weights() -> None:
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    assert named_network(one) == named_network(one)
    assert named_network(one) != named_network(other)


def test_the_same_arrays_are_stored_once(tmp_path: Path) -> None:
    inputs, labels = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    first = stored_data(inputs, labels, 2, tmp_path)
    written = sorted(tmp_path.rglob("*"))
    assert stored_data((inputs, labels), None, 2, tmp_path) == first
    assert sorted(tmp_path.rglob("*")) == written
    assert stored_data(inputs + 1, labels, 2, tmp_path).task["path"] != first.task["path"]
