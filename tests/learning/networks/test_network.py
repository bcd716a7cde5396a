"""Networks of the user's own, and the modes in which Top-K updates of any network travel."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedreuse.compression.wire.block import sparse_block
from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain
from fedreuse.learning.networks.network import OwnNetwork, networks

OWN = """
from dataclasses import dataclass
from torch import nn

class Tiny(nn.Module):
    def __init__(self, shape, num_classes, hidden=4):
        super().__init__()
        self.body = nn.Linear(shape[0], hidden)
        self.fc = nn.Linear(hidden, num_classes)

def fixed():
    return nn.Linear(3, 2)

def wide(num_classes):
    return nn.Linear(7, num_classes)

def wrong(shape):
    return "a string"

@dataclass(frozen=True)
class Proper:
    units: int = 3
    def build(self, shape, num_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], num_classes * self.units))
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's."""
    (tmp_path / "own_networks.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_networks"])
    return "own_networks"


def test_our_own_have_names() -> None:
    assert {"cnn", "mlp", "resnet18"} <= set(networks.names())


def test_a_class_gets_the_shape_the_classes_and_its_options(own: str) -> None:
    network = networks.parse({"name": f"{own}:Tiny", "hidden": 6}, "network")
    module = network.build((5,), 3)
    assert module.get_parameter("body.weight").shape == (6, 5)
    assert module.get_parameter("fc.weight").shape == (3, 6)
    assert networks.parse(f"{own}:Tiny", "network").build((5,), 3).get_parameter("fc.weight").shape == (3, 4)


def test_a_function_gets_only_what_it_takes(own: str) -> None:
    assert networks.parse(f"{own}:fixed", "network").build((5,), 3).get_parameter("weight").shape == (2, 3)
    assert networks.parse(f"{own}:wide", "network").build((5,), 3).get_parameter("weight").shape == (3, 7)


def test_a_frozen_dataclass_is_parsed_strictly(own: str) -> None:
    network = networks.parse({"name": f"{own}:Proper", "units": 2}, "network")
    assert network.build((5,), 3).get_parameter("1.weight").shape == (6, 5)
    assert named_plain(networks, network) == {"name": f"{own}:Proper", "units": 2}
    with pytest.raises(ConfigError, match=r"network\.unit: unknown key; did you mean 'units'\?"):
        networks.parse({"name": f"{own}:Proper", "unit": 2}, "network")


def test_it_is_written_back_as_it_was_read(own: str) -> None:
    spec = {"name": f"{own}:Tiny", "hidden": 6}
    network = networks.parse(spec, "network")
    assert named_plain(networks, network) == spec
    assert networks.parse(named_plain(networks, network), "network") == network


def test_what_cannot_be_a_network_is_refused(own: str) -> None:
    with pytest.raises(ConfigError, match=r"network: own_networks:Tiny\(shape, num_classes, depth\) failed: .*depth"):
        networks.parse({"name": f"{own}:Tiny", "depth": 2}, "network").build((5,), 3)
    with pytest.raises(ConfigError, match=r"own_networks:wrong returned str, a torch\.nn\.Module is needed"):
        networks.parse(f"{own}:wrong", "network").build((5,), 3)
    with pytest.raises(ConfigError, match=r"network\.name: 'own_networks' has no 'Tini'; did you mean 'Tiny'\?"):
        networks.parse(f"{own}:Tini", "network")
    with pytest.raises(ConfigError, match=r"network: 'resnet' is not one of the networks; did you mean 'resnet18'\?"):
        networks.parse("resnet", "network")
    with pytest.raises(ConfigError, match=r"network: a name is missing, for example \{name: cnn\}"):
        networks.parse({"width": 3}, "network")


def test_options_may_replace_what_is_passed() -> None:
    def build(num_classes: int) -> nn.Module:
        return nn.Linear(2, num_classes)

    assert OwnNetwork(build, "m:build", {"num_classes": 9}).build((2,), 3).get_parameter("weight").shape == (9, 2)


# The size of one tensor of d coordinates, k of them kept, b bytes each:
#   dense d * b        bitmap k * b + ceil(d / 8)        pairs k * (b + 4)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(size=st.integers(1, 3000), share=st.floats(0, 1), width=st.sampled_from([4, 8]))
def test_the_mode_is_the_smallest_of_the_three(size: int, share: float, width: int) -> None:
    count = round(share * size)
    block = sparse_block(np.arange(count, dtype=np.int32), np.ones(count, f"f{width}"), size)
    by_mode = {"dense": size * width, "bitmap": count * width + ceil(size / 8), "pairs": count * (width + 4)}
    assert block.field_bytes == by_mode[block.mode.name] == min(by_mode.values())


def test_pairs_turn_into_a_bitmap_above_one_in_thirty_two() -> None:
    # d = 3200, b = 4: pairs 8 k against bitmap 4 k + 400, equal at k = 100 = d / 32 (a tie is a bitmap)
    found = {k: sparse_block(np.arange(k, dtype=np.int32), np.ones(k, np.float32), 3200) for k in (99, 100, 101)}
    assert {k: block.mode.name for k, block in found.items()} == {99: "pairs", 100: "bitmap", 101: "bitmap"}
    assert {k: block.field_bytes for k, block in found.items()} == {99: 792, 100: 800, 101: 804}
    # dense again when the bitmap no longer pays: 4 k + 400 against 12800, equal at k = 3100
    many = {k: sparse_block(np.arange(k, dtype=np.int32), np.ones(k, np.float32), 3200) for k in (3099, 3100)}
    assert {k: block.mode.name for k, block in many.items()} == {3099: "bitmap", 3100: "dense"}
