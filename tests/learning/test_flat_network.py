"""A network over flat vectors: the same values in the same order as the module's own, whatever the layout inside."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream
from fedreuse.core.schema import ModelSchema, Schema
from fedreuse.core.tensors import Tensors, to_arrays
from fedreuse.learning.flat_network import FlatNetwork, frozen_digest, schema_of
from fedreuse.learning.networks.cnn import Cnn
from fedreuse.learning.networks.mlp import Mlp
from fedreuse.learning.networks.resnet18 import ResNet18

MODULES = {
    "cnn": lambda: Cnn(3, 5).build((2, 8, 8), 4),
    "mlp": lambda: Mlp((6,)).build((5,), 3),
    "resnet18": lambda: ResNet18().build((3, 32, 32), 10),
}


class Odd(nn.Module):
    """A frozen convolution, a scale that is a buffer, a counter, and scratch memory that is no part of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 2, 3)
        self.stem.weight.requires_grad_(False)
        self.fc = nn.Linear(2, 2)
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))
        self.register_buffer("seen", torch.tensor(7))
        self.register_buffer("scratch", torch.zeros(5), persistent=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.fc(self.stem(inputs).mean((2, 3)) * self.scale)
        return scores


def draw(schema: ModelSchema, seed: int = 1) -> Model:
    """Any bits: numbers of all sizes, negative zeros, subnormals."""
    rng = stream(seed, "bits")

    def fill(part: Schema) -> Tensors:
        if np.issubdtype(part.dtype, np.integer):
            return Tensors(part, rng.integers(0, 2**40, part.size).astype(part.dtype))
        values = rng.standard_normal(part.size) * 10.0 ** rng.integers(-40, 30, part.size)
        values[::7] = -0.0
        return Tensors(part, values.astype(part.dtype))

    return Model(fill(schema.weights), fill(schema.buffers), fill(schema.counters))


def parts(model: Model) -> tuple[Tensors, Tensors, Tensors]:
    return model.weights, model.buffers, model.counters


def bits(model: Model) -> list[bytes]:
    return [part.values.tobytes() for part in parts(model)]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_order_and_values_are_the_modules_own(name: str) -> None:
    module = MODULES[name]()
    before = {key: tensor.detach().clone().numpy() for key, tensor in module.state_dict().items()}
    network = FlatNetwork(module)
    arrays = [(key, array) for part in parts(network.read()) for key, array in to_arrays(part).items()]
    after = module.state_dict()
    # by role, each in the order of the state dictionary
    for part in parts(network.read()):
        names = [spec.name for spec in part.schema]
        assert names == [key for key in before if key in names]
    assert sorted(key for key, _ in arrays) == sorted(before)
    for key, array in arrays:
        assert array.shape == before[key].shape
        assert array.tobytes() == np.ascontiguousarray(before[key]).tobytes()
        assert after[key].numpy().tobytes() == before[key].tobytes()
    flat = np.concatenate([before[spec.name].reshape(-1) for spec in network.schema.weights])
    assert network.read().weights.values.tobytes() == flat.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_what_is_loaded_is_read_bit_for_bit(name: str) -> None:
    network = FlatNetwork(MODULES[name]())
    model = draw(network.schema)
    network.load(model)
    assert bits(network.read()) == bits(model)
    for part in parts(model):
        for key, array in to_arrays(part).items():
            assert network.module.state_dict()[key].numpy().tobytes() == array.tobytes()


def test_channels_last_stays_inside() -> None:
    network = FlatNetwork(Cnn(3, 5).build((2, 8, 8), 4))
    weight = network.module.get_parameter("features.4.weight")  # 6 x 3 x 3 x 3
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert not weight.is_contiguous()
    inside = network.vector.detach().numpy()
    assert not np.array_equal(inside, network.read().weights.values)  # another order in memory ...
    assert np.array_equal(np.sort(inside), np.sort(network.read().weights.values))  # ... of the same numbers


def test_reading_copies_and_never_shows_later_changes() -> None:
    network = FlatNetwork(MODULES["cnn"]())
    first = network.read()
    before = bits(first)
    network.load(draw(network.schema))
    assert bits(first) == before
    assert bits(network.read()) != before


def test_the_flat_vector_is_the_module() -> None:
    network = FlatNetwork(Mlp((3,)).build((2,), 2))
    with torch.no_grad():
        network.vector.fill_(0.25)
    assert all((parameter == 0.25).all() for parameter in network.module.parameters())
    inputs = torch.tensor([[1.0, 2.0]])
    # hidden: 0.25 (1 + 2) + 0.25 = 1 three times; scores: 0.25 * 3 + 0.25 = 1
    assert network.module(inputs).tolist() == [[1.0, 1.0]]
    network.module(inputs).sum().backward()
    assert network.vector.grad is not None
    # d scores / d fc.bias = 1 each; the flat gradient ends with them
    assert network.vector.grad[-2:].tolist() == [1.0, 1.0]


def test_gradients_come_back_in_schema_order() -> None:
    network = FlatNetwork(MODULES["cnn"]())
    wanted = draw(network.schema).weights
    loss = torch.zeros(())
    for name, parameter in network.module.named_parameters():
        loss = loss + (parameter * torch.from_numpy(to_arrays(wanted)[name].copy())).sum()
    assert network.vector.grad is not None
    network.vector.grad.zero_()
    loss.backward()  # type: ignore[no-untyped-call]
    names = [spec.name for spec in network.schema.weights]
    found = network.read_gradient(names)
    assert np.array_equal(found.values, wanted.values)  # the gradient of <w, c> is c
    head = network.schema.head()
    some = network.read_gradient(head)
    assert [spec.name for spec in some.schema] == list(head)
    assert np.array_equal(some.values, np.concatenate([to_arrays(wanted)[name].reshape(-1) for name in head]))
    network.vector.grad.zero_()
    assert np.array_equal(some.values[:5], to_arrays(wanted)[head[0]].reshape(-1)[:5])  # a copy
    assert network.read_gradient(()).values.shape == (0,)


def test_a_placed_vector_lies_beside_the_weights() -> None:
    network = FlatNetwork(MODULES["cnn"]())
    model = draw(network.schema)
    network.load(model)
    placed = network.place(model.weights)
    assert placed.numpy().tobytes() == network.vector.detach().numpy().tobytes()


def test_only_what_is_asked_for_is_differentiated() -> None:
    network = FlatNetwork(MODULES["cnn"]())
    network.differentiate(network.schema.head())
    wants = {name: parameter.requires_grad for name, parameter in network.module.named_parameters()}
    assert {name for name, is_wanted in wants.items() if is_wanted} == set(network.schema.head())
    network.differentiate(None)
    assert all(parameter.requires_grad for parameter in network.module.parameters())


def test_roles() -> None:
    schema = schema_of(MODULES["cnn"]())
    assert [spec.name for spec in schema.buffers] == [
        "features.1.running_mean", "features.1.running_var", "features.5.running_mean", "features.5.running_var",
    ]  # fmt: skip
    assert [spec.is_positive for spec in schema.buffers] == [False, True, False, True]
    assert [(spec.name, spec.dtype, spec.role) for spec in schema.counters] == [
        ("features.1.num_batches_tracked", "int64", "counter"),
        ("features.5.num_batches_tracked", "int64", "counter"),
    ]
    assert {spec.role for spec in schema.weights} == {"weight"}
    assert schema.weights.specs[0].shape == (3, 2, 3, 3)


def test_a_frozen_parameter_stays_at_home_and_scratch_is_nothing() -> None:
    network = FlatNetwork(Odd())
    assert [spec.name for spec in network.schema.weights] == ["stem.bias", "fc.weight", "fc.bias"]
    assert [spec.name for spec in network.schema.buffers] == ["scale"]
    assert [spec.name for spec in network.schema.counters] == ["seen"]
    stem = network.module.get_parameter("stem.weight").detach().clone()
    before, model = network.read(), draw(network.schema)
    assert to_arrays(before.buffers)["scale"].tolist() == [2.0, 3.0]
    assert before.counters.values.tolist() == [7]
    network.load(model)
    module = network.module
    assert module.get_parameter("stem.weight").equal(stem)
    assert network.schema.frozen == frozen_digest(module) != ""
    assert FlatNetwork(MODULES["mlp"]()).schema.frozen == ""
    assert module.get_buffer("scale").numpy().tobytes() == model.buffers["scale"].tobytes()
    assert int(module.get_buffer("seen")) == model.counters.values[0]
    assert bits(network.read()) == bits(model)
    network.differentiate(None)
    assert not module.get_parameter("stem.weight").requires_grad  # frozen stays frozen


def test_tied_parameters_are_one() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    module[1].weight = module[0].weight
    network = FlatNetwork(module)
    assert [spec.name for spec in network.schema.weights] == ["0.weight", "0.bias", "1.bias"]
    network.load(draw(network.schema))
    assert module[1].weight.equal(module[0].weight)


def test_modules_that_cannot_be_a_model_are_refused() -> None:
    frozen = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(ConfigError, match="network: Linear has no trainable parameter"):
        schema_of(frozen)
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    with pytest.raises(ConfigError, match=r"network: one dtype per schema, got .*float32.*float64.*\.float\(\)"):
        schema_of(mixed)
    odd = nn.Linear(2, 2)
    odd.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    with pytest.raises(ConfigError, match=r"network: buffer mask is torch\.bool; only floating point and int64"):
        schema_of(odd)


def test_double_precision_is_a_network_like_any_other() -> None:
    network = FlatNetwork(Mlp((3,)).build((2,), 2).double())
    model = draw(network.schema)
    network.load(model)
    assert network.schema.weights.dtype == np.float64
    assert bits(network.read()) == bits(model)


@pytest.mark.parametrize("name", ["cnn", "resnet18"])
def test_gradients_of_losses_are_added(name: str) -> None:
    network = FlatNetwork(MODULES[name]())
    inputs = torch.randn(3, *((2, 8, 8) if name == "cnn" else (3, 32, 32)))
    network.module.eval()  # the same function each time
    network.backward(network.module(inputs).square().sum())
    once = network.gradient.clone()
    assert once.any()
    network.backward(network.module(inputs).square().sum())
    assert torch.allclose(network.gradient, 2 * once, rtol=1e-5, atol=1e-5 * float(once.abs().max()))


def half_frozen() -> nn.Sequential:
    made = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    for weight in made.parameters():
        nn.init.constant_(weight, 0.5)
    made[0].requires_grad_(False)
    return made


def test_the_frozen_digest_depends_on_every_bit() -> None:
    one, other = half_frozen(), half_frozen()
    assert frozen_digest(one) == frozen_digest(other) != ""
    other[1].weight.data += 1  # trained, so not part of the digest
    assert frozen_digest(one) == frozen_digest(other)
    other[0].bias.data[1] = -0.5
    assert frozen_digest(one) != frozen_digest(other)


def test_precision_is_part_of_the_frozen_digest() -> None:
    one, half = half_frozen(), half_frozen()
    half[0].to(torch.bfloat16)  # 0.5 is the same number
    assert frozen_digest(one) != frozen_digest(half)


def test_without_frozen_weights_the_digest_is_empty() -> None:
    assert frozen_digest(nn.Linear(2, 2)) == ""
