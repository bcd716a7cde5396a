"""Ditto (Li et al., 2021): FedAvg for everybody, and beside it a model of its own for every client.

    shared      w_t+1 = w_t + server_lr * sum_S omega_i delta_i                          exactly FedAvg
    personal    v_i <- v_i - lr (grad F_i(v_i) + pull (v_i - w_t))                       i in S_t, the same epochs

v_i starts at w_1, never leaves its client, and has running statistics of its own. Its batches come from a stream of
their own, so that the shared model is FedAvg's bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.corrections import proximal
from fedreuse.core.errors import RunError, require
from fedreuse.core.method import ClientHalf, MethodConfig, methods
from fedreuse.core.model import Model, from_groups
from fedreuse.core.needs import Needs
from fedreuse.core.registry import optional_part
from fedreuse.core.tensors import is_finite
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import Aggregator, aggregators
from fedreuse.methods.aggregators.mean import chosen_aggregator
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import BufferPolicy

__all__ = ["Ditto", "DittoClient", "Personal"]


@methods.register("ditto")
@dataclass(frozen=True)
class Ditto(MethodConfig):
    """FedAvg, and a personal model at every client that is pulled towards the shared one.

    `pull` is the paper's lambda: 0 trains alone, more stays closer to the shared model.

    Args:
        pull: The paper's lambda, not negative: 0 trains the personal model alone, more stays closer to the
            shared one.
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.
        aggregate: Another rule for the updates of a round; null is the weighted mean.
        step: Another server step; null is `sgd` with `server_lr`.

    Example: `method: {name: ditto, pull: 0.5}`.
    """

    pull: float = 1.0
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"
    aggregate: Aggregator | None = optional_part(aggregators)
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.pull >= 0, "method.pull must not be negative", self.pull)
        chosen_step(self.step, self.server_lr)
        chosen_aggregator(self.aggregate, self.weighting)

    @property
    def needs(self) -> Needs:
        """The pull enters every step of the personal model."""
        return Needs(corrections=self.pull > 0)

    @property
    def is_personal(self) -> bool:
        """What counts is each client's own model."""
        return True

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, DittoClient]:
        """FedAvg's server; it never hears of personal models."""
        del buffers
        step, aggregate = chosen_step(self.step, self.server_lr), chosen_aggregator(self.aggregate, self.weighting)
        return AveragingServer(step, aggregate), DittoClient(self.pull)


@value
class Personal:
    """The client's own model v_i; None before its first training, which stands for the initial model."""

    model: Model | None


@dataclass(frozen=True)
class DittoClient(ClientHalf[Personal]):
    """Trains as FedAvg's client does and replies as it does; then trains its own model."""

    pull: float

    def init(self) -> Personal:
        """v_i = w_1."""
        return Personal(None)

    def own_model(self, state: Personal, received: Model, trainer: LocalTrainer) -> Model:
        """v_i."""
        del received
        return trainer.initial if state.model is None else state.model

    def answer(self, request: Message, state: Personal, trainer: LocalTrainer) -> tuple[Message, Personal]:
        """FedAvg's answer; v_i moves on, pulled towards the received model."""
        reply, _ = TrainingClient().answer(request, None, trainer)
        received = from_groups(request.groups, "model", trainer.schema)
        own = self.own_model(state, received, trainer)
        personal = trainer.train(own, proximal(received.weights, self.pull), purpose="personal batches")
        if is_finite(reply.groups["update"]) and not is_finite(personal.model.weights):
            raise RunError(
                f"a personal model is no longer finite: method.pull {self.pull} is too large for the learning rate "
                f"{personal.lr}; keep their product below 2, or lower local.optimizer.lr"
            )
        return reply, Personal(personal.model)

    def settle(self, state: Personal, delivered: Message) -> Personal:
        """Nothing depends on what arrived."""
        del delivered
        return state
