"""What tests of server halves share: rounds by hand, with replies of one number each; and learning rates that fall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedreuse.core.cohort import Cohort
from fedreuse.core.message import Events, Message
from fedreuse.core.method import ServerHalf
from fedreuse.core.model import Model
from fedreuse.core.population import Population
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTrainer

ONE = ModelSchema(Schema((TensorSpec("fc.weight", (1,), "float64"),)))
"""A model of one weight."""


def number(value: float) -> Tensors:
    """A tensor of one number."""
    return Tensors(ONE.weights, np.array([value]))


def start(server: ServerHalf[Any], population: Population, weight: float = 0.0) -> Any:
    """The state of a server whose model is one weight."""
    return server.init(Model(number(weight), zeros(ONE.buffers), zeros(ONE.counters)), population)


def step(
    server: ServerHalf[Any], state: Any, cohort: Cohort, updates: Mapping[int, float]
) -> tuple[dict[int, Message], Any, Events]:
    """One round in which these clients answer with these updates: what was asked, the new state, the events."""
    conversation = server.round(state, cohort)
    asked = next(conversation)
    try:
        conversation.send({client: Message("update", {"update": number(value)}) for client, value in updates.items()})
    except StopIteration as finished:
        state, events = finished.value
        return dict(asked), state, events
    raise AssertionError("one exchange expected")


def weight(server: ServerHalf[Any], state: Any) -> float:
    """The one weight."""
    return float(server.model(state).weights.values[0])


@dataclass(frozen=True, eq=False)
class Decaying(QuadraticFederation):
    """A federation whose learning rate falls by `gamma` from round to round."""

    gamma: float = 0.7

    def factor(self, round_number: int) -> float:
        """Relative to the first round."""
        return float(self.gamma ** (round_number - 1))

    def trainer(self, client: int, round_number: int) -> QuadraticTrainer:
        """Training at this round's rate."""
        training = replace(self.training, lr=self.training.lr * self.factor(round_number))
        return QuadraticTrainer(replace(self, training=training), client, round_number)

    def cohort(self, round_number: int, size: int) -> Cohort:
        """The cohort knows the rate."""
        return replace(super().cohort(round_number, size), lr_factor=self.factor(round_number))
