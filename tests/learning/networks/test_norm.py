"""Normalisation: how many groups, what each choice is made of, and that examples of a batch stay apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import named_plain
from fedreuse.learning.flat_network import schema_of
from fedreuse.learning.networks.cnn import Cnn
from fedreuse.learning.networks.network import networks
from fedreuse.learning.networks.norm import Norm, check_norm, norm_layer, num_groups
from fedreuse.learning.networks.resnet18 import ResNet18
from fedreuse.runs.launch import run

NORMS: tuple[Norm, ...] = get_args(Norm)


@pytest.mark.parametrize(
    ("channels", "groups"),
    [
        (1, 1), (3, 1), (4, 1),
        (7, 1),  # a prime number: all channels are one group
        (8, 2),
        (34, 2),  # divisors 1, 2, 17, 34; at most 34 // 4 = 8 groups
        (16, 4), (32, 8), (64, 16),  # four channels in each
        (128, 32), (256, 32), (512, 32),  # never more than 32
        (96, 24),
        (148, 4),  # 148 = 4 * 37: 37 groups are too many
    ],
)  # fmt: skip
def test_the_number_of_groups(channels: int, groups: int) -> None:
    assert num_groups(channels) == groups


@pytest.mark.parametrize("channels", range(1, 200))
def test_groups_divide_the_channels_and_are_not_narrow(channels: int) -> None:
    groups = num_groups(channels)
    assert channels % groups == 0
    assert groups == 1 or (groups <= 32 and channels // groups >= 4)


def test_each_choice_is_a_layer() -> None:
    assert isinstance(norm_layer("batch", 8), nn.BatchNorm2d)
    group = norm_layer("group", 8)
    assert isinstance(group, nn.GroupNorm)
    assert (group.num_groups, group.num_channels) == (2, 8)
    assert isinstance(norm_layer("none", 8), nn.Identity)


def test_group_norm_by_hand() -> None:
    # 8 channels of one pixel in 2 groups: 0 0 2 2 has mean 1 and deviation 1; 0 0 6 6 has mean 3 and deviation 3
    inputs = torch.tensor([0.0, 0, 2, 2, 0, 0, 6, 6]).reshape(1, 8, 1, 1)
    outputs = norm_layer("group", 8)(inputs).flatten()
    assert outputs.tolist() == pytest.approx([-1, -1, 1, 1, -1, -1, 1, 1], abs=1e-4)


@pytest.mark.parametrize("name", ["cnn", "resnet18"])
def test_an_unknown_norm_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^network\.norm: input should be 'batch', 'group' or 'none', got 'layer'$"):
        networks.parse({"name": name, "norm": "layer"}, "network")


@pytest.mark.parametrize("make", [Cnn, ResNet18, check_norm])
def test_an_unknown_norm_is_refused_in_python_too(make: Any) -> None:
    with pytest.raises(ConfigError, match=r"network\.norm must be one of batch, group, none, got 'layer'"):
        make("layer") if make is check_norm else make(norm="layer")


def test_the_norm_is_part_of_the_run_id() -> None:
    assert named_plain(networks, Cnn()) == {"name": "cnn", "width": 32, "hidden": 128, "norm": "batch"}
    assert named_plain(networks, ResNet18(norm="group")) == {"name": "resnet18", "norm": "group"}
    plain: dict[str, Any] = {"task": {"name": "digits"}, "network": {"name": "cnn", "norm": "batch"}}
    assert load(plain).run_id == load({"task": {"name": "digits"}, "network": "cnn"}).run_id
    plain["network"] = {"name": "cnn", "norm": "group"}
    assert load(plain).run_id != load({"task": {"name": "digits"}, "network": "cnn"}).run_id


@pytest.mark.parametrize("network", [Cnn, ResNet18])
def test_what_is_drawn_is_the_same_with_each(network: Any) -> None:
    states = []
    for norm in NORMS:
        torch.default_generator.manual_seed(5)
        states.append(network(norm=norm).build((3, 8, 8), 4).state_dict())
    drawn = [name for name, tensor in states[0].items() if tensor.dim() > 1]
    assert len(drawn) == (4 if network is Cnn else 21)  # 2 convolutions and 2 layers; 20 convolutions and 1 layer
    for state in states[1:]:
        assert all(state[name].equal(states[0][name]) for name in drawn)


@pytest.mark.parametrize("network", [Cnn(4, 8, norm="group"), Cnn(4, 8, norm="none"), ResNet18(norm="group"),
                                     ResNet18(norm="none")], ids=str)  # fmt: skip
def test_there_are_neither_statistics_nor_counters(network: Any) -> None:
    module = network.build((3, 8, 8), 4)
    assert list(module.buffers()) == []
    schema = schema_of(module)
    assert (len(schema.buffers), len(schema.counters)) == (0, 0)
    assert schema.dense_bytes == 4 * schema.weights.size


def gradient(module: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the first example's score: by the inputs of all, and by the first convolution."""
    module.zero_grad()
    inputs = inputs.clone().requires_grad_()
    module(inputs)[0].square().sum().backward()
    weight = next(module.parameters())
    assert inputs.grad is not None
    assert weight.grad is not None
    return inputs.grad, weight.grad.clone()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("network", [Cnn, ResNet18])
def test_whether_an_example_depends_on_the_others_of_its_batch(network: Any, norm: Norm) -> None:
    torch.default_generator.manual_seed(2)
    module = network(norm=norm).build((1, 16, 16), 4).double()
    inputs = torch.randn(3, 1, 16, 16, dtype=torch.float64)
    others = torch.cat([inputs[:1], 5 * torch.randn(2, 1, 16, 16, dtype=torch.float64) + 1])
    by_inputs, by_weight = gradient(module, inputs)
    _, beside_others = gradient(module, others)
    is_alone = norm != "batch"
    assert bool((by_inputs[1:] == 0).all()) == is_alone
    assert torch.allclose(by_weight, beside_others, rtol=1e-9) == is_alone
    assert by_inputs[0].abs().sum() > 0


@pytest.mark.parametrize("norm", ["group", "none"])
def test_one_example_is_enough_and_evaluation_is_training(norm: Norm) -> None:
    module = Cnn(4, 8, norm).build((1, 8, 8), 3)
    example = torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8)
    assert module.train()(example).equal(module.eval()(example))


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("method", "uplink", "buffers"),
    [
        ("fedavg", None, "dense"),
        ({"name": "lean", "budget": 0.3}, None, "dense"),
        ("dg_fedreuse", {"update": {"name": "top_k", "ratio": 0.2}}, "dense"),
        ("dg_fedreuse", {"update": {"name": "top_k", "ratio": 0.2}}, "as_weights"),
    ],
    ids=["fedavg", "lean", "dg_fedreuse", "dg_fedreuse as_weights"],
)
def test_runs_send_weights_alone_unless_there_are_statistics(
    tmp_path: Path, norm: Norm, method: Any, uplink: Any, buffers: str
) -> None:
    directory = run(load({
        "task": {"name": "digits", "clients": 6}, "network": {"name": "cnn", "width": 4, "hidden": 16, "norm": norm},
        "local": {"epochs": 1, "batch": 32}, "method": method, "uplink": uplink, "buffers": buffers,
        "rounds": {"count": 3, "cohort": 3}, "executor": "serial", "seed": 1,
    }), tmp_path / "run")  # fmt: skip
    sent = {key.partition(":")[0] for row in directory.ledger() for key in row.fields}
    assert {"model", "update"} <= sent
    assert sent & {"buffers", "counters"} == ({"buffers", "counters"} if norm == "batch" else set())
    assert sum(row.work.flops for row in directory.ledger()) > 0


def test_flops_by_hand() -> None:
    # one 8x8 image, width 4, hidden 16: conv 2*64*4*9 = 4,608, conv 2*16*8*4*9 = 9,216, fc 2*32*16 = 1,024,
    # fc 2*16*10 = 320, forward 15,168; backward by weights the same, by inputs the same but for the first: 10,560
    counted = []
    for norm in NORMS:
        module = Cnn(4, 16, norm).build((1, 8, 8), 10)
        with FlopCounterMode(display=False) as counter:
            module(torch.zeros(2, 1, 8, 8)).sum().backward()
        counted.append(counter.get_total_flops())
    assert counted == [2 * (15_168 + 15_168 + 10_560)] * 3
