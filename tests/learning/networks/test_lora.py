"""LoRA as a network: what is the model, what stays, and runs whose bytes are those of the adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.lora import Lora
from fedreuse.learning.networks.network import networks
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from tests.tiny import results, tiny

SMALL = {"name": "transformer", "width": 8, "layers": 1, "heads": 2}


def flat(seed: int = 1, **settings: Any) -> FlatNetwork:
    torch.default_generator.manual_seed(seed)
    return FlatNetwork(networks.parse({"name": "lora", "of": SMALL, "rank": 2, **settings}, "network").build((4,), 20))


def test_adapters_alone_are_the_model() -> None:
    schema = flat(targets=["query", "up"]).schema
    assert [(spec.name, spec.shape) for spec in schema.weights] == [
        ("blocks.0.query.lora_A.default.weight", (2, 8)), ("blocks.0.query.lora_B.default.weight", (8, 2)),
        ("blocks.0.up.lora_A.default.weight", (2, 8)), ("blocks.0.up.lora_B.default.weight", (32, 2)),
    ]  # fmt: skip
    assert (schema.buffers.size, schema.counters.size) == (0, 0)
    assert schema.head() == ("blocks.0.up.lora_A.default.weight", "blocks.0.up.lora_B.default.weight")


def test_the_head_is_the_networks_own_where_it_is_trained() -> None:
    assert flat(train=["head"]).schema.head() == ("head.weight", "head.bias")


def test_ffa_trains_b_alone_and_a_is_part_of_the_frozen_digest() -> None:
    one, same, other = flat(freeze_a=True), flat(freeze_a=True), flat(2, freeze_a=True)
    assert all(spec.name.endswith("lora_B.default.weight") for spec in one.schema.weights)
    assert one.schema.frozen == same.schema.frozen != other.schema.frozen


def test_a_target_that_matches_nothing() -> None:
    with pytest.raises(ConfigError, match=r"network\.targets: 'nothing' matches no layer"):
        flat(targets=["nothing"])


LORA: dict[str, Any] = {
    "name": "lora",
    "of": {"name": "cnn", "width": 2, "hidden": 8},
    "rank": 2,
    "targets": ["classifier.0"],
    "train": ["classifier.2"],
}


@pytest.mark.slow
def test_a_run_sends_and_counts_adapters_alone(tmp_path: Path) -> None:
    config = tiny(network=LORA)
    federation = assemble(config)
    assert [spec.name for spec in federation.schema.weights] == [
        "classifier.0.lora_A.default.weight", "classifier.0.lora_B.default.weight",
        "classifier.2.weight", "classifier.2.bias",
    ]  # fmt: skip
    found = run(config, tmp_path / "serial")
    assert found.provenance["digests"]["frozen"] == federation.schema.frozen
    assert found.provenance["reference"]["dense_bytes"] == federation.schema.dense_bytes
    assert set(found.model()) == {spec.name for spec in (*federation.schema.weights, *federation.schema.buffers,
                                                         *federation.schema.counters)}  # fmt: skip


@pytest.mark.slow
def test_a_pool_ends_in_the_same_bits(tmp_path: Path) -> None:
    runs = [run(tiny(f"executor={name}", network=LORA), tmp_path / name) for name in ("serial", "pool")]
    assert results(runs[0]) == results(runs[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"rank": 0}, r"network\.rank must be at least 1"), ({"alpha": 0.0}, r"network\.alpha must be above 0")],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Lora(networks.parse("mlp", "network.of"), **settings)
