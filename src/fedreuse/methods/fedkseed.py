"""FedKSeed (Qin et al., 2024): zeroth-order steps along K directions that never change; the model is K numbers.

w     = w_0 + sum_k a_k z_k                              a: all that is sent down; both ends draw z_k and build w_0
s steps at client i, from v = w: k drawn from 1 .. K
    g = (F_i(v + mu z_k) - F_i(v - mu z_k)) / (2 mu)            one batch for each step
    v -= lr g z_k,   b_i,k -= lr g
a    += sum_S omega_i b_i                                       b_i: all that is sent up
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, ServerHalf, methods
from fedreuse.core.model import Model, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.numbers import Numbers, pack_numbers, unpack_numbers
from fedreuse.core.values import value
from fedreuse.methods.decomfl import slope
from fedreuse.methods.directions import along, check_basis, check_shared, signs
from fedreuse.methods.replay import mean_numbers

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation, Value
    from fedreuse.core.method import BufferPolicy, Scope
    from fedreuse.core.population import Population
    from fedreuse.core.tensors import Tensors

__all__ = ["FedKSeed", "FedKSeedClient", "FedKSeedServer", "FedKSeedState"]

_ALL = "amounts"


@methods.register(
    "fedkseed", refuses={"aggregate": "it averages scalars", "step": "its step moves along random directions"}
)
@dataclass(frozen=True)
class FedKSeed(MethodConfig):
    """FedKSeed: zeroth-order optimisation along a fixed set of directions; the model travels as one number for each.

    Args:
        seeds: Directions, at least 1; numbers of a request, and of a reply.
        steps: Local steps per round, at least 1; each costs two forward passes.
        lr: Learning rate, above 0; far below that of first-order training.
        mu: Distance of the two points at which the loss is compared, above 0.
        basis: Seed of the directions, the same at both ends.

    Raises:
        ConfigError: If a value is out of range.

    Example: `method: {name: fedkseed, seeds: 1024, steps: 50, lr: 1.0e-4}`.
    """

    seeds: int = 1024
    steps: int = 50
    lr: float = 1e-4
    mu: float = 1e-3
    basis: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.seeds >= 1, "method.seeds must be at least 1", self.seeds)
        require(self.steps >= 1, "method.steps must be at least 1", self.steps)
        require(self.lr > 0, "method.lr must be above 0", self.lr)
        require(self.mu > 0, "method.mu must be above 0", self.mu)

    @property
    def needs(self) -> Needs:
        """Losses at given models."""
        return Needs(losses=True)

    @property
    def uplink_groups(self) -> tuple[str, ...]:
        """None: numbers are sent as they are."""
        return ()

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """None: numbers are sent as they are."""
        return ()

    def check(self, scope: Scope) -> None:
        """Refuse a federation whose clients do not create the initial model."""
        check_shared("fedkseed", scope)

    def halves(self, buffers: BufferPolicy) -> tuple[FedKSeedServer, FedKSeedClient]:
        """Return both halves; running statistics do not change."""
        del buffers
        return FedKSeedServer(self), FedKSeedClient(self)

    def model(self, initial: Tensors, amounts: np.ndarray) -> Tensors:
        """Return w_0 + sum_k a_k z_k."""
        drawn = ((one, self.direction(k, initial.schema.size)) for k, one in enumerate(amounts.tolist()) if one)
        return along(initial, drawn)

    def direction(self, k: int, size: int) -> np.ndarray:
        """Return z_k."""
        return signs(self.basis, 0, k, size)


@value
class FedKSeedState:
    """The initial weights, the numbers that the model is, and the model."""

    initial: Tensors
    amounts: np.ndarray
    model: Model


@dataclass(frozen=True)
class FedKSeedServer(ServerHalf[FedKSeedState]):
    """The server half: sends the numbers, and adds the mean of the clients' changes."""

    config: FedKSeed

    def init(self, model: Model, population: Population) -> FedKSeedState:
        """Return the state before the first round."""
        del population
        return FedKSeedState(model.weights, unpack_numbers(pack_numbers(np.zeros(self.config.seeds))), model)

    def model(self, state: FedKSeedState) -> Model:
        """Return the model."""
        return state.model

    def round(self, state: FedKSeedState, cohort: Cohort) -> Conversation[FedKSeedState]:
        """Ask the cohort for changes of the numbers, and add their mean."""
        values: dict[str, Value] = {"basis": self.config.basis, _ALL: pack_numbers(state.amounts)}
        groups = {name: part for name, part in to_groups(state.model, "model").items() if name != "model"}
        answer = Answer("update", values={_ALL: Numbers(self.config.seeds)})
        replies = yield dict.fromkeys(cohort.clients, Message("train", groups, values, answers=(answer,)))
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)
        amounts = unpack_numbers(pack_numbers(state.amounts + mean_numbers(replies, cohort, _ALL)))
        weights = self.config.model(state.initial, amounts)
        model = Model(weights, state.model.buffers, state.model.counters)
        return FedKSeedState(state.initial, amounts, model), Events(events)


@dataclass(frozen=True)
class FedKSeedClient(ClientHalf[None]):
    """The client half: builds the model from the numbers, takes steps, keeps no state."""

    has_state: ClassVar[bool] = False

    config: FedKSeed

    def init(self) -> None:
        """Return None: the client keeps no state."""

    def answer(self, request: Message, state: None, trainer: LocalTrainer) -> tuple[Message, None]:
        """Take steps along drawn directions, and reply with their sums by direction."""
        config, size = self.config, trainer.schema.weights.size
        check_basis(request.values["basis"], config.basis)
        start = config.model(trainer.initial.weights, unpack_numbers(request.values[_ALL]))
        at = from_groups({**request.groups, "model": start}, "model", trainer.schema)
        changes = np.zeros(config.seeds)
        for number, k in enumerate(trainer.rng("seeds").integers(0, config.seeds, config.steps).tolist()):
            direction = config.direction(k, size)
            change = -config.lr * slope(at, direction, config.mu, trainer, f"batches {number}")
            at = Model(along(at.weights, [(change, direction)]), at.buffers, at.counters)
            changes[k] += change
        return Message("update", values={_ALL: pack_numbers(changes)}), state

    def settle(self, state: None, delivered: Message) -> None:
        """Return None: the client keeps no state."""
