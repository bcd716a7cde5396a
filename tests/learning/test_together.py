"""Clients trained together: the numbers of training alone, up to rounding, and the networks that cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from fedreuse.core.corrections import Correction
from fedreuse.core.errors import ConfigError
from fedreuse.core.local_trainer import Paused
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors
from fedreuse.learning.losses.loss import OwnLoss
from fedreuse.learning.networks.cnn import CnnModule
from fedreuse.learning.optimizers import Optimizer
from fedreuse.learning.together import Group, obstacle, resolved_size
from fedreuse.learning.trainer import Trainer
from fedreuse.runs.federation import assemble
from tests.tiny import tiny

ROUNDING = {"rtol": 1e-4, "atol": 2e-6}
"""Bound of the difference to training one by one after a few steps, in float32."""


def trainer_of(network: Any = None, **local: Any) -> Trainer:
    # a skewed partition: clients have different numbers of examples, batches and steps
    task = {"partition": {"name": "dirichlet", "alpha": 0.4, "min_examples": 2}, "validation": 0.0}
    settings = {"epochs": 2, "batch": 8, **local}
    return assemble(tiny(task=task, network=network or {"name": "mlp", "hidden": [7]}, local=settings)).trainer


def both(trainer: Trainer, corrections: list[Correction | None], **call: Any) -> list[tuple[Any, Any, Any]]:
    """Results of all clients alone, of the same together, and the trainer of the latter."""
    group = Group(trainer, 6)
    waiting = group.trainers(range(6), 3)
    starts = [_moved(trainer.initial, client / 100) for client in range(6)]
    for one, start, correction in zip(waiting, starts, corrections, strict=True):
        with pytest.raises(Paused):
            one.train(start, correction, **call)
    group.train(waiting)
    found = []
    for client, (one, start, correction) in enumerate(zip(waiting, starts, corrections, strict=True)):
        one.restart()
        alone = trainer.for_client(client, 3)
        found.append((alone.train(start, correction, **call), one.train(start, correction, **call), (alone, one)))
    return found


def _moved(model: Model, by: float) -> Model:
    return replace(model, weights=Tensors(model.weights.schema, model.weights.values + np.float32(by)))


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "mlp": (None, {}),
    "adam": (None, {"optimizer": {"name": "adam", "lr": 0.01}}),
    "clipped": (None, {"clip_norm": 0.05}),
    "cnn": ({"name": "cnn", "width": 4, "hidden": 8, "norm": "group"}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_together_is_alone_up_to_rounding(case: str) -> None:
    network, local = CASES[case]
    trainer = trainer_of(network, **local)
    assert obstacle(trainer) == ""
    assert len({len(trainer.training.of(client)) for client in range(6)}) > 2
    for alone, together, (one, other) in both(trainer, [None] * 6):
        assert (alone.steps, alone.examples, alone.lr) == (together.steps, together.examples, together.lr)
        assert replace(one.work, seconds=0.0) == replace(other.work, seconds=0.0)
        np.testing.assert_allclose(together.model.weights.values, alone.model.weights.values, **ROUNDING)


def test_a_group_of_images_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedreuse.learning.stacked.sequence._CLIENTS_OF_MAPS", 4)
    for alone, together, _ in both(trainer_of({"name": "cnn", "width": 4, "hidden": 8, "norm": "group"}), [None] * 6):
        np.testing.assert_allclose(together.model.weights.values, alone.model.weights.values, **ROUNDING)


@pytest.mark.parametrize("place", ["before_momentum", "after_momentum"])
def test_corrections_of_each_client(place: Any) -> None:
    trainer = trainer_of()
    schema = trainer.network.schema.weights
    shifts = [Tensors(schema, np.full(schema.size, client / 50, np.float32)) for client in range(6)]
    corrections: list[Correction | None] = [
        Correction(shift, 0.1, trainer.initial.weights, place) if client % 2 else None
        for client, shift in enumerate(shifts)
    ]
    for alone, together, _ in both(trainer, corrections, steps=3, purpose="other batches"):
        assert together.steps == 3
        np.testing.assert_allclose(together.model.weights.values, alone.model.weights.values, **ROUNDING)


def test_the_same_group_has_the_same_bits() -> None:
    first, again = (both(trainer_of(), [None] * 6) for _ in range(2))
    for (_, one, _), (_, other, _) in zip(first, again, strict=True):
        assert one.model.weights.values.tobytes() == other.model.weights.values.tobytes()


def test_padding_does_not_count_where_labels_are_numbers() -> None:
    trainer = trainer_of()
    trainer.loss = tiny(task={"loss": "squared_error", "metric": "r2"}).task.loss
    trainer._labels = torch.from_numpy(stream(3, "numbers").standard_normal((len(trainer._labels), 4)))
    for alone, together, _ in both(trainer, [None] * 6):
        np.testing.assert_allclose(together.model.weights.values, alone.model.weights.values, **ROUNDING)


@dataclass(frozen=True)
class Normed(Optimizer):
    """A step whose length depends on all weights."""

    lr: float = 0.1

    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Any:
        """Never called here."""
        raise NotImplementedError


def test_networks_that_cannot_are_named() -> None:
    assert obstacle(trainer_of({"name": "cnn", "width": 2, "hidden": 4})).startswith(
        "BatchNorm2d (features.1) has buff"
    )
    dropping = trainer_of()
    dropping.network.module.add_module("dropout", torch.nn.Dropout(0.5))
    assert "torch cannot batch Sequential over clients: vmap" in obstacle(dropping)
    odd = trainer_of()
    odd.local = replace(odd.local, optimizer=Normed())
    assert obstacle(odd) == "optimizer Normed is not marked `is_elementwise`"
    own = trainer_of()
    own.loss = OwnLoss(lambda outputs, labels: (outputs.sum(1) - labels).mean(), "mine:loss")
    assert obstacle(own) == "loss OwnLoss has no `terms`, the loss of each label"
    assert resolved_size(1, own, 8) == (1, "")


def test_auto_is_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of()  # (64 + 1) * 7 + (7 + 1) * 4 = 487 weights
    assert resolved_size("auto", trainer, 10) == (3, "")
    assert resolved_size("auto", trainer, 10_000) == (256, "")
    assert resolved_size(32, trainer, 10) == (32, "")
    wide = trainer_of({"name": "mlp", "hidden": [300]})  # 65 * 300 + 301 * 4 = 20,704 weights
    assert resolved_size("auto", wide, 10_000) == (2**21 // 20_704, "")
    large = trainer_of({"name": "mlp", "hidden": [3000]})
    assert resolved_size("auto", large, 100) == (
        1, "207,004 weights, above the 200,000 up to which `auto` batches clients",
    )  # fmt: skip
    images = {"name": "cnn", "width": 80, "hidden": 8, "norm": "none"}
    size, reason = resolved_size("auto", trainer_of(images), 100)
    assert (size, reason.partition(" ")[2]) == (
        1, "operations per example, above the 8,000,000 up to which `auto` batches clients",
    )  # fmt: skip
    assert resolved_size("auto", trainer_of(images | {"width": 32}), 100) == (25, "")
    monkeypatch.delattr(CnnModule, "in_sequence")  # as an own module
    size, reason = resolved_size("auto", trainer_of(images | {"width": 32}), 100)
    assert (size, reason.partition(" ")[2]) == (
        1, "operations per example, above the 500,000 up to which `auto` batches clients",
    )  # fmt: skip
    assert resolved_size(4, trainer_of(images), 100) == (4, "")
    with pytest.raises(ConfigError, match="together must be at least 1"):
        tiny(local={"together": 0})


def test_a_client_follows_only_one_that_read_nothing_of_its_own() -> None:
    trainer = trainer_of()
    first, second, third = Group(trainer, 3).trainers(range(3), 1)
    with pytest.raises(Paused):
        first.train(trainer.initial)
    assert second.follow(first)
    Group(trainer, 3).train([first, second])
    for client, one in enumerate((first, second)):
        one.restart()
        alone = trainer.for_client(client, 1).train(trainer.initial)
        np.testing.assert_allclose(
            one.train(trainer.initial).model.weights.values, alone.model.weights.values, **ROUNDING
        )
    assert not third.follow(first)  # it has a result already
    for read in (lambda one: one.client, lambda one: one.rng("draws"), lambda one: one.work):
        reader, other = Group(trainer, 2).trainers(range(2), 1)
        read(reader)
        with pytest.raises(Paused):
            reader.train(trainer.initial)
        assert not other.follow(reader)
