"""Local training, proxies and evaluation: against plain torch on the unmodified module, and the rules around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedreuse.core.corrections import Correction, proximal
from fedreuse.core.errors import ConfigError
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream
from fedreuse.core.registry import parse
from fedreuse.core.tensors import Tensors, to_arrays
from fedreuse.learning.data import Data, Split
from fedreuse.learning.losses.cross_entropy import CrossEntropy
from fedreuse.learning.metrics.accuracy import Accuracy
from fedreuse.learning.networks.cnn import Cnn
from fedreuse.learning.networks.mlp import Mlp
from fedreuse.learning.networks.network import OwnNetwork
from fedreuse.learning.optimizers import Adam, Exponential, Sgd
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.scoring import Scoring
from fedreuse.learning.trainer import Local, TorchLocalTrainer, Trainer, device_of, initial_network

SEED = 3
SIZES = (10, 9, 1, 24)
LOCAL = Local(epochs=2, batch=4, optimizer=Sgd(lr=0.05, momentum=0.9, weight_decay=1e-2))
CNN = Cnn(width=2, hidden=5)


def images(shape: tuple[int, ...] = (1, 8, 8), num_classes: int = 3, **options: Any) -> Data:
    rng = stream(1, "images")
    count = sum(SIZES)
    inputs = rng.integers(0, 256, (count, *shape)).astype(np.uint8)
    labels = np.arange(count, dtype=np.int64) % num_classes
    test = Split(inputs[:7], labels[:7])
    return Data("own", num_classes, Split(inputs, labels), test, mean=(0.4,), std=(0.3,), **options)


def index_of(sizes: tuple[int, ...]) -> ClientIndex:
    """Clients that take their examples from a shuffled deck."""
    order = stream(2, "deck").permutation(sum(sizes)).astype(np.int64)
    return ClientIndex(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), order)


def make(network: Any = CNN, local: Local = LOCAL, data: Data | None = None, seed: int = SEED) -> Trainer:
    held = images() if data is None else data
    flat = initial_network(network, held.shape, held.num_classes, seed)
    validation = ClientIndex(np.array([0, 3, 3, 3, 3]), np.array([4, 5, 6]))
    return Trainer(flat, held, (index_of(SIZES), validation), local, (CrossEntropy(), Scoring(Accuracy())), seed)


def start_of(trainer: Trainer) -> Model:
    return trainer.network.read()


def bits(model: Model) -> list[bytes]:
    return [part.values.tobytes() for part in (model.weights, model.buffers, model.counters)]


class Plain:
    """Plain torch: the module as its author wrote it, torch's own optimiser, a loop."""

    def __init__(self, network: Any, data: Data, start: Model, rule: Sgd) -> None:
        self.module: nn.Module = network.build(data.shape, data.num_classes)
        self.module.train()
        named = {**to_arrays(start.weights), **to_arrays(start.buffers), **to_arrays(start.counters)}
        self.module.load_state_dict({name: torch.tensor(array) for name, array in named.items()})
        self.anchor = [parameter.detach().clone() for parameter in self.module.parameters()]
        self.data, self.rule = data, rule
        self.optimizer = torch.optim.SGD(
            self.module.parameters(), rule.lr, rule.momentum, weight_decay=rule.weight_decay, foreach=False
        )

    def gradient(self, index: np.ndarray) -> list[torch.Tensor]:
        inputs = torch.tensor(self.data.train.inputs[index])
        if inputs.dtype == torch.uint8:
            inputs = (inputs / 255 - self.data.mean[0]) / self.data.std[0]
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.module(inputs), torch.tensor(self.data.train.labels[index]))
        loss.backward()  # type: ignore[no-untyped-call]
        return [parameter.grad for parameter in self.module.parameters() if parameter.grad is not None]

    def step(self, index: np.ndarray, mu: float = 0.0, clip: float | None = None) -> None:
        gradients = self.gradient(index)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), clip)
        for parameter, gradient, anchor in zip(self.module.parameters(), gradients, self.anchor, strict=True):
            gradient.add_(parameter.detach() - anchor, alpha=mu)
        self.optimizer.step()

    def assert_close(self, model: Model, tolerance: float = 1e-6) -> None:
        held = self.module.state_dict()
        for part in (model.weights, model.buffers, model.counters):
            for name, array in to_arrays(part).items():
                np.testing.assert_allclose(array, held[name].numpy(), rtol=0, atol=tolerance, err_msg=name)


def batches_of(client: int, round_number: int = 1, size: int = 4, purpose: str = "batches") -> Iterator[np.ndarray]:
    """Epoch after epoch a new order from the client's stream, in batches; a trailing batch of one is dropped."""
    rng, examples = stream(SEED, purpose, round_number, client), index_of(SIZES).of(client)
    while True:
        order = examples[rng.permutation(len(examples))]
        yield from (batch for at in range(0, len(order), size) if len(batch := order[at : at + size]) > 1)


# training


@pytest.mark.parametrize("network", [CNN, Mlp((6,))], ids=["cnn", "mlp"])
def test_training_is_torchs_own_step_by_step(network: Any) -> None:
    """Flat, fused, channels-last against the unmodified module with torch's SGD: momentum, weight decay, BatchNorm."""
    trainer = make(network)
    start = start_of(trainer)
    plain = Plain(network, images(), start, LOCAL.optimizer)  # type: ignore[arg-type]
    for number, batch in enumerate(islice(batches_of(0), 6), start=1):
        plain.step(batch)
        trained = trainer.for_client(0, 1).train(start, steps=number)
        assert trained.steps == number
        plain.assert_close(trained.model)
    assert bits(trained.model) == bits(trainer.for_client(0, 1).train(start).model)  # 2 epochs of 3 batches are 6 steps
    moved = np.abs(trained.model.weights.values - start.weights.values).max()
    assert moved > 1e-2  # the tolerance above is a small part of the way


def test_a_pull_before_momentum_is_a_term_of_the_gradient() -> None:
    trainer = make()
    start = start_of(trainer)
    plain = Plain(CNN, images(), start, LOCAL.optimizer)  # type: ignore[arg-type]
    for batch in islice(batches_of(0), 6):
        plain.step(batch, mu=2.0)
    pulled = trainer.for_client(0, 1).train(start, proximal(start.weights, 2.0)).model
    plain.assert_close(pulled)
    free = trainer.for_client(0, 1).train(start).model
    assert np.abs(pulled.weights.values - free.weights.values).max() > 1e-3


def test_no_pull_is_no_correction_bit_for_bit() -> None:
    trainer = make()
    start = start_of(trainer)
    free = bits(trainer.for_client(0, 1).train(start).model)
    assert free == bits(trainer.for_client(0, 1).train(start, proximal(start.weights, 0.0)).model)
    assert free == bits(trainer.for_client(0, 1).train(start, Correction(pull=0.0, anchor=start.weights)).model)


@pytest.mark.parametrize("place", ["before_momentum", "after_momentum"])
def test_a_correction_by_hand(place: Any) -> None:
    """Two steps with a shift s and a pull from an anchor a, momentum 0.9, against the equations."""
    trainer = make(Mlp(()), replace(LOCAL, optimizer=Sgd(0.1, 0.9, 0.0)))
    start = start_of(trainer)
    size = start.weights.schema.size
    shift, anchor = (stream(5, name).standard_normal(size).astype(np.float32) for name in ("shift", "anchor"))
    correction = Correction(Tensors(start.weights.schema, shift), 0.5, Tensors(start.weights.schema, anchor), place)
    trained = trainer.for_client(0, 1).train(start, correction, steps=2).model.weights.values
    w, ball = start.weights.values.astype(np.float64), np.zeros(size)
    plain = Plain(Mlp(()), images(), start, Sgd(0.1, 0.9, 0.0))
    for batch in islice(batches_of(0), 2):
        with torch.no_grad():
            for parameter, piece in zip(plain.module.parameters(), np.split(w, [3 * 64]), strict=True):
                parameter.copy_(torch.tensor(piece.reshape(parameter.shape)))
        gradient = np.concatenate([part.numpy().reshape(-1) for part in plain.gradient(batch)]).astype(np.float64)
        if place == "before_momentum":
            ball = 0.9 * ball + gradient + shift + 0.5 * (w - anchor)
            w = w - 0.1 * ball
        else:
            # the correction sees the weights that the step has just left
            ball = 0.9 * ball + gradient
            stepped = w - 0.1 * ball
            w = stepped - 0.1 * (shift + 0.5 * (stepped - anchor))
    np.testing.assert_allclose(trained, w, rtol=0, atol=2e-6)


def test_clipping_is_torchs_and_comes_before_the_correction() -> None:
    trainer = make(local=replace(LOCAL, clip_norm=0.5))
    start = start_of(trainer)
    plain = Plain(CNN, images(), start, LOCAL.optimizer)  # type: ignore[arg-type]
    for batch in islice(batches_of(3), 12):
        plain.step(batch, mu=1.0, clip=0.5)
    plain.assert_close(trainer.for_client(3, 1).train(start, proximal(start.weights, 1.0)).model)


def test_a_clipped_step_is_as_long_as_it_may_be() -> None:
    local = Local(epochs=1, batch=4, optimizer=Sgd(lr=0.5, momentum=0.0, weight_decay=0.0), clip_norm=1e-3)
    trainer = make(local=local)
    start = start_of(trainer)
    moved = trainer.for_client(0, 1).train(start, steps=1).model.weights.values - start.weights.values
    # lr * clip_norm = 0.5 * 0.001, but for what float32 loses on weights of size one
    assert float(np.linalg.norm(moved)) == pytest.approx(5e-4, rel=1e-3)


@pytest.mark.parametrize(
    ("client", "steps", "examples"),
    [
        (0, 6, 20),  # 10 examples in batches of 4: 4, 4, 2, twice
        (1, 4, 16),  # 9 examples: 4, 4, and a trailing one that is dropped, twice
        (2, 0, 0),  # one example: nothing to train on
        (3, 12, 48),  # 24: six full batches, twice
    ],
)
def test_a_trailing_batch_of_one_is_dropped_and_steps_are_counted(client: int, steps: int, examples: int) -> None:
    trainer = make()
    start = start_of(trainer)
    local_trainer = trainer.for_client(client, 1)
    trained = local_trainer.train(start)
    assert (trained.steps, trained.examples) == (steps, SIZES[client])
    assert (trained.lr, trained.momentum) == (0.05, 0.9)
    assert (local_trainer.work.training_steps, local_trainer.work.training_examples) == (steps, examples)
    assert local_trainer.work.flops == examples * trainer.flops_per_example(None)
    # BatchNorm counts its batches: the counters are the steps
    assert (trained.model.counters.values - start.counters.values).tolist() == [steps, steps]
    if not steps:
        assert bits(trained.model) == bits(start)


def test_a_number_of_steps_replaces_the_epochs() -> None:
    trainer = make()
    start = start_of(trainer)
    local_trainer = trainer.for_client(1, 1)
    assert local_trainer.train(start, steps=7).steps == 7  # 9 examples give 2 batches an epoch: three and a half epochs
    assert local_trainer.work.training_examples == 28
    assert trainer.for_client(1, 1).train(start, steps=0).steps == 0


def test_a_client_with_one_example_takes_no_steps_however_many_are_asked() -> None:
    trainer = make()
    start = start_of(trainer)
    trained = trainer.for_client(2, 1).train(start, steps=5)
    assert trained.steps == 0
    assert bits(trained.model) == bits(start)


def test_batches_of_an_epoch_are_every_example_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make()
    seen: list[np.ndarray] = []
    whole = trainer.batch
    monkeypatch.setattr(trainer, "batch", lambda index, augment: (seen.append(index), whole(index, augment))[1])
    trainer.for_client(0, 1).train(start_of(trainer))
    mine = sorted(index_of(SIZES).of(0).tolist())
    first, second = seen[:3], seen[3:6]
    assert sorted(np.concatenate(first).tolist()) == mine
    assert sorted(np.concatenate(second).tolist()) == mine
    assert np.concatenate(first).tolist() != np.concatenate(second).tolist()  # a new order


def test_the_learning_rate_follows_the_round() -> None:
    rule = Sgd(lr=0.2, momentum=0.0, weight_decay=0.0)
    trainer = make(local=Local(1, 4, rule, Exponential(0.5)))
    start = start_of(trainer)
    assert [trainer.for_client(0, number).train(start, steps=0).lr for number in (1, 2, 3)] == [0.2, 0.1, 0.05]
    # the same batches at half the rate: exactly half the way, because halving is exact
    slow = make(local=Local(1, 4, Sgd(lr=0.1, momentum=0.0, weight_decay=0.0)))
    assert bits(trainer.for_client(0, 2).train(start, steps=1).model) == bits(
        slow.for_client(0, 2).train(start, steps=1).model
    )


def test_every_training_starts_with_a_fresh_optimiser() -> None:
    for rule in (LOCAL.optimizer, Adam()):
        trainer = make(local=replace(LOCAL, optimizer=rule))
        start = start_of(trainer)
        first = trainer.for_client(0, 1).train(start)
        trainer.for_client(3, 1).train(first.model)
        assert bits(trainer.for_client(0, 1).train(start).model) == bits(first.model)


def test_seed_round_client_and_purpose_choose_the_batches_and_nothing_else_does() -> None:
    trainer = make()
    start = start_of(trainer)

    def trained(client: int, number: int, purpose: str = "batches", by: Trainer = trainer) -> list[bytes]:
        return bits(by.for_client(client, number).train(start, purpose=purpose).model)

    first = trained(0, 1)
    trainer.for_client(3, 1).train(start)
    trainer.evaluate(start)
    torch.rand(5)
    assert trained(0, 1) == first
    other = make(seed=SEED + 1)
    differing = [trained(0, 2), trained(1, 1), trained(0, 1, "again"), trained(0, 1, by=other)]
    assert all(found != first for found in differing)


def test_what_is_received_is_left_alone() -> None:
    trainer = make()
    start = start_of(trainer)
    before = bits(start)
    trained = trainer.for_client(0, 1).train(start)
    kept = bits(trained.model)
    trainer.for_client(0, 1).gradient(start, start.schema.head(), BatchPlan(1, 4), "p")
    trainer.for_client(3, 2).train(trained.model)
    assert bits(start) == before
    assert bits(trained.model) == kept
    with pytest.raises(ValueError, match="read-only"):
        trained.model.weights.values[0] = 1.0


# dropout, augmentation, precision


def dropout(shape: tuple[int, ...], num_classes: int) -> nn.Module:
    size = int(np.prod(shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(size, 8), nn.Dropout(0.5), nn.Linear(8, num_classes))


DROPOUT = OwnNetwork(dropout, "own:dropout")


def test_dropout_is_drawn_from_the_stream() -> None:
    trainer = make(DROPOUT)
    start = start_of(trainer)
    first = bits(trainer.for_client(0, 1).train(start).model)
    torch.rand(17)  # whatever torch drew before
    assert bits(trainer.for_client(0, 1).train(start).model) == first
    assert bits(make(DROPOUT).for_client(0, 1).train(start).model) == first
    without = make(OwnNetwork(lambda shape, num_classes: dropout(shape, num_classes).eval(), "own:none"))
    without.network.module[2].p = 0.0  # type: ignore[index,union-attr]
    assert bits(without.for_client(0, 1).train(start).model) != first


def test_a_dropout_proxy_depends_on_the_round_unless_it_is_deterministic() -> None:
    trainer = make(DROPOUT)
    start, names = start_of(trainer), ("3.weight", "3.bias")

    def proxy(number: int, is_deterministic: bool) -> bytes:
        plan = BatchPlan(None, 16, is_deterministic)
        return trainer.for_client(0, number).gradient(start, names, plan, "p").values.tobytes()

    assert proxy(1, False) == proxy(1, False) != proxy(2, False)
    assert proxy(1, True) == proxy(2, True) == proxy(90, True)


def test_augmented_images_are_drawn_from_a_stream_of_their_own() -> None:
    plain, augmented = make(), make(data=images(is_augmented=True))
    start = start_of(plain)
    first = bits(augmented.for_client(0, 1).train(start).model)
    assert first == bits(augmented.for_client(0, 1).train(start).model)
    assert first != bits(plain.for_client(0, 1).train(start).model)
    head = start.schema.head()
    proxies = [one.for_client(0, 1).gradient(start, head, BatchPlan(2, 4, True), "p") for one in (plain, augmented)]
    assert proxies[0].values.tobytes() == proxies[1].values.tobytes()  # a deterministic proxy is not augmented
    assert augmented.evaluate(start) == plain.evaluate(start)  # neither is evaluation


def test_a_network_in_double_precision_trains_on_the_same_images() -> None:
    double = OwnNetwork(lambda shape, num_classes: Mlp((6,)).build(shape, num_classes).double(), "own:double")
    trainer, single = make(double), make(Mlp((6,)))
    start = start_of(trainer)
    assert start.weights.schema.dtype == np.float64
    trained = trainer.for_client(0, 1).train(start).model.weights.values
    narrow = Model(
        Tensors(single.network.schema.weights, start.weights.values.astype(np.float32)),
        *(start_of(single).buffers, start_of(single).counters),
    )
    np.testing.assert_allclose(trained, single.for_client(0, 1).train(narrow).model.weights.values, rtol=0, atol=1e-5)
    assert trainer.evaluate(start).examples == sum(SIZES)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_inputs_that_are_no_images_are_taken_as_they_are(dtype: str) -> None:
    whole = images()
    numbers = ((whole.train.inputs / 255 - 0.4) / 0.3).astype(dtype)
    data = replace(whole, train=Split(numbers, whole.train.labels), mean=(9.0,), std=(9.0,))
    trainer, reference = make(Mlp((6,)), data=data), make(Mlp((6,)))
    start = start_of(trainer)
    trained = trainer.for_client(0, 1).train(start).model
    expected = reference.for_client(0, 1).train(start).model
    np.testing.assert_allclose(trained.weights.values, expected.weights.values, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint8", ">i8"])
def test_labels_may_be_any_integers(dtype: str) -> None:
    whole = images()
    data = replace(whole, train=Split(whole.train.inputs, whole.train.labels.astype(dtype)))
    trainer, reference = make(data=data), make()
    start = start_of(trainer)
    assert bits(trainer.for_client(0, 1).train(start).model) == bits(reference.for_client(0, 1).train(start).model)
    assert trainer.evaluate(start) == reference.evaluate(start)
    split = Split(data.train.inputs[:5], data.train.labels[:5])
    assert trainer.evaluate(start, split).examples == 5


# proxies


def gradient(
    local_trainer: TorchLocalTrainer,
    at: Model,
    names: Any,
    num_batches: int | None = 1,
    purpose: str = "gate proxy",
    **plan: Any,
) -> Tensors:
    return local_trainer.gradient(at, names, BatchPlan(num_batches, 4, **plan), purpose)


def test_the_head_proxy_is_the_head_of_the_full_gradient() -> None:
    trainer = make()
    start = start_of(trainer)
    head = start.schema.head()
    everything = [spec.name for spec in start.schema.weights]
    part = to_arrays(gradient(trainer.for_client(0, 1), start, head, 3))
    whole = to_arrays(gradient(trainer.for_client(0, 1), start, everything, 3))
    assert list(part) == list(head)
    for name in head:
        np.testing.assert_allclose(part[name], whole[name], rtol=1e-6, atol=1e-7)
    assert all(np.abs(part[name]).max() > 1e-3 for name in head)


def test_a_proxy_is_the_sum_of_mean_gradients_of_plain_torch() -> None:
    trainer = make()
    start = start_of(trainer)
    names = [spec.name for spec in start.schema.weights]
    plain = Plain(CNN, images(), start, LOCAL.optimizer)  # type: ignore[arg-type]
    for num_batches, taken in ((1, 1), (2, 2), (None, 3), (9, 3)):  # 10 examples are three batches, and never more
        total: list[np.ndarray] = [np.zeros(spec.shape) for spec in start.schema.weights]
        for batch in islice(batches_of(0, purpose="gate proxy"), taken):
            total = [sum_ + part.numpy() for sum_, part in zip(total, plain.gradient(batch), strict=True)]
        local_trainer = trainer.for_client(0, 1)
        found = to_arrays(gradient(local_trainer, start, names, num_batches))
        for name, wanted in zip(names, total, strict=True):
            np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=2e-6)
        assert (local_trainer.work.proxy_gradients, local_trainer.work.training_steps) == (taken, 0)
        assert local_trainer.work.proxy_examples == {1: 4, 2: 8, 3: 10}[taken]


def test_a_mean_instead_of_a_sum_and_the_batch_size_of_training() -> None:
    trainer = make()
    start = start_of(trainer)
    head = start.schema.head()
    total = gradient(trainer.for_client(0, 1), start, head, None)
    mean = gradient(trainer.for_client(0, 1), start, head, None, is_mean=True)
    np.testing.assert_allclose(mean.values, total.values / 3, rtol=1e-6, atol=1e-9)
    local_trainer = trainer.for_client(0, 1)
    assert local_trainer.gradient(start, head, BatchPlan(), "gate proxy").values.tobytes() == total.values.tobytes()
    assert local_trainer.work.proxy_gradients == 3  # local.batch is 4 as well


def test_a_proxy_leaves_no_trace_in_what_comes_next() -> None:
    trainer = make()
    start = start_of(trainer)
    alone = bits(make().for_client(0, 1).train(start).model)
    local_trainer = trainer.for_client(0, 1)
    gradient(local_trainer, start, start.schema.head(), 3)
    assert (
        bits(local_trainer.train(start).model) == alone
    )  # neither running statistics nor gradients nor frozen weights
    assert trainer.evaluate(start) == make().evaluate(start)
    assert all(parameter.requires_grad for parameter in trainer.network.module.parameters())


def test_the_head_costs_no_backward_pass_through_the_features() -> None:
    trainer = make(Cnn(width=8, hidden=8))
    start = start_of(trainer)
    head = trainer.flops_per_example(start.schema.head())
    full = trainer.flops_per_example(None)
    # one example forward: conv 8*8*8*9*1, conv 4*4*16*9*8, fc 64*8 and 8*3, twice for multiply and add
    forward = 2 * (8 * 8 * 8 * 9 + 4 * 4 * 16 * 9 * 8 + 64 * 8 + 8 * 3)
    # backward: for the weights as much again, for the inputs of a layer again, but not for those of the first
    head_backward = 2 * (64 * 8 + 2 * 8 * 3)
    full_backward = 2 * (8 * 8 * 8 * 9 + 2 * (4 * 4 * 16 * 9 * 8) + 2 * 64 * 8 + 2 * 8 * 3)
    assert head == forward + head_backward
    assert full == forward + full_backward
    local_trainer = trainer.for_client(0, 1)
    gradient(local_trainer, start, start.schema.head(), 2)
    assert local_trainer.work.flops == 8 * head < 8 * full


def test_the_flops_on_record_are_those_that_were_spent() -> None:
    trainer = make()
    start = start_of(trainer)
    head = start.schema.head()
    per_example = trainer.flops_per_example(head), trainer.flops_per_example(None)
    local_trainer = trainer.for_client(0, 1)
    with FlopCounterMode(display=False) as counter:
        gradient(local_trainer, start, head, 2)
    assert counter.get_total_flops() == local_trainer.work.flops == 8 * per_example[0]  # really no more than the head
    local_trainer = trainer.for_client(0, 1)
    with FlopCounterMode(display=False) as counter:
        local_trainer.train(start)
    assert counter.get_total_flops() == local_trainer.work.flops == 20 * per_example[1]


def test_counting_flops_changes_nothing() -> None:
    trainer, start = make(), start_of(make())
    trainer.network.load(start)
    trainer.flops_per_example(None)
    assert bits(trainer.network.read()) == bits(start)


def test_a_deterministic_proxy_is_the_same_in_every_round() -> None:
    trainer = make()
    start = start_of(trainer)
    head = start.schema.head()
    fixed = [
        gradient(trainer.for_client(0, t), start, head, is_deterministic=True).values.tobytes() for t in (1, 2, 50)
    ]
    drawn = [gradient(trainer.for_client(0, t), start, head).values.tobytes() for t in (1, 2, 50)]
    assert len(set(fixed)) == 1
    assert len(set(drawn)) == 3
    assert drawn[0] == gradient(trainer.for_client(0, 1), start, head).values.tobytes()
    other_client = gradient(trainer.for_client(3, 1), start, head, is_deterministic=True).values.tobytes()
    other_purpose = gradient(trainer.for_client(0, 1), start, head, is_deterministic=True, purpose="q").values.tobytes()
    assert len({fixed[0], other_client, other_purpose}) == 3


def test_a_deterministic_proxy_uses_the_running_statistics() -> None:
    trainer = make()
    start = start_of(trainer)
    shifted = replace(start, buffers=Tensors(start.buffers.schema, start.buffers.values + np.float32(0.5)))
    head = start.schema.head()

    def is_affected(is_deterministic: bool) -> bool:
        here, there = (
            gradient(trainer.for_client(0, 1), at, head, is_deterministic=is_deterministic).values.tobytes()
            for at in (start, shifted)
        )
        return here != there

    assert is_affected(True)
    assert not is_affected(False)  # in training mode BatchNorm looks at the batch alone


def test_a_client_with_one_example_has_a_zero_proxy() -> None:
    trainer = make()
    start = start_of(trainer)
    local_trainer = trainer.for_client(2, 1)
    found = gradient(local_trainer, start, start.schema.head(), 5)
    assert not found.values.any()
    assert local_trainer.work.proxy_gradients == 0


# evaluation


def test_evaluation_by_plain_torch() -> None:
    trainer = make()
    start = start_of(trainer)
    data = images()
    module = Plain(CNN, data, start, LOCAL.optimizer).module.eval()  # type: ignore[arg-type]
    with torch.inference_mode():
        scores = module((torch.tensor(data.train.inputs) / 255 - 0.4) / 0.3)
        labels = torch.tensor(data.train.labels)
        loss = float(nn.functional.cross_entropy(scores, labels, reduction="sum"))
        right = int((scores.argmax(1) == labels).sum())
    found = trainer.evaluate(start)
    assert (found.examples, found.score) == (44, right)
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert found.mean_score == right / 44
    assert trainer.evaluate(start, index=np.array([4, 5, 6])).examples == 3
    assert trainer.evaluate(start, data.test).examples == 7
    assert trainer.for_client(0, 1).evaluate(start) == trainer.evaluate(start, index=np.array([4, 5, 6]))
    nobody = trainer.for_client(1, 1).evaluate(start)
    assert nobody.examples == 0
    assert np.isnan(nobody.mean_score)


def test_large_splits_are_evaluated_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make()
    start = start_of(trainer)
    whole = trainer.evaluate(start)
    monkeypatch.setattr("fedreuse.learning.trainer._EVALUATION_BATCH", 10)
    pieces = trainer.evaluate(start)  # 10, 10, 10, 10 and 4
    assert (pieces.examples, pieces.score) == (whole.examples, whole.score)
    assert pieces.loss == pytest.approx(whole.loss, rel=1e-5)


def test_evaluation_leaves_running_statistics_alone() -> None:
    trainer = make()
    start = start_of(trainer)
    trainer.evaluate(start)
    assert bits(trainer.network.read()) == bits(start)


def test_images_are_normalised_by_channel() -> None:
    data = replace(images((2, 4, 4)), mean=(0.5, 0.2), std=(0.25, 0.1))
    trainer = make(Mlp(()), data=data)
    found = trainer.normalise(torch.tensor([[[[255]], [[0]]]], dtype=torch.uint8))
    # (1 - 0.5) / 0.25 = 2 and (0 - 0.2) / 0.1 = -2
    assert found.flatten().tolist() == pytest.approx([2.0, -2.0])
    floats = torch.tensor([[3.0, 4.0]])
    assert trainer.normalise(floats).equal(floats)
    tokens = torch.tensor([[3, 4]])
    assert trainer.normalise(tokens).equal(tokens)


# what all share


def test_initial_weights_follow_the_seed_alone() -> None:
    def build(seed: int) -> list[bytes]:
        return bits(initial_network(CNN, (1, 8, 8), 3, seed).read())

    first = build(1)
    torch.rand(3)
    assert build(1) == first != build(2)


def test_one_thread() -> None:
    torch.set_num_threads(2)
    make()
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"epochs": 0}, r"local\.epochs must be at least 1, got 0"),
        ({"batch": 1}, r"local\.batch must be at least 2, .*got 1"),
        ({"clip_norm": 0}, r"local\.clip_norm must be positive, got 0"),
        ({"optimizer": {"name": "sgd", "lr": 0}}, r"local\.optimizer: .*lr must be positive.*, got 0"),
        ({"optimizer": "sdg"}, r"local\.optimizer: 'sdg' is not one of the optimizers; did you mean 'sgd'\?"),
        ({"epoch": 1}, r"local\.epoch: unknown key; did you mean 'epochs'\?"),
        ({"batch": 2.5}, r"local\.batch: .*integer.*, got 2\.5"),
        ({"epochs": True}, r"local\.epochs: int expected, got True"),
    ],
)
def test_settings_that_are_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(Local, spec, "local")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_is_refused_where_there_is_none():
    assert device_of("cpu") == torch.device("cpu")
    with pytest.raises(ConfigError, match=r"local\.device is cuda, but torch finds no CUDA device here"):
        device_of("cuda")
