"""Ditto (Li et al., 2021): FedAvg, and in addition a personal model for every client.

    shared      w_t+1 = w_t + server_lr * sum_S omega_i delta_i                          exactly FedAvg
    personal    v_i <- v_i - lr (grad F_i(v_i) + pull (v_i - w_t))                       i in S_t, the same epochs

v_i starts at w_1, never leaves its client, and has its own running statistics. Its batches come from a separate random
stream, so that the shared model is bit-identical to FedAvg's.
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
    """Ditto: FedAvg, and a personal model at every client that is pulled towards the shared one.

    Args:
        pull: The paper's lambda, at least 0: 0 trains the personal model alone, larger values keep it closer to the
            shared one.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.
        aggregate: Aggregator of the round's updates; null is the weighted mean.
        step: Server step; null is `sgd` with `server_lr`.

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
        """Corrections of local steps, for the pull on the personal model."""
        return Needs(corrections=self.pull > 0)

    @property
    def is_personal(self) -> bool:
        """True: each client's own model is evaluated."""
        return True

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, DittoClient]:
        """Return FedAvg's server half, which never sees personal models, and Ditto's client half."""
        del buffers
        step, aggregate = chosen_step(self.step, self.server_lr), chosen_aggregator(self.aggregate, self.weighting)
        return AveragingServer(step, aggregate), DittoClient(self.pull)


@value
class Personal:
    """The client's own model v_i; None before its first training means the initial model."""

    model: Model | None


@dataclass(frozen=True)
class DittoClient(ClientHalf[Personal]):
    """The client half: trains and replies as FedAvg's, then trains its own model."""

    pull: float

    def init(self) -> Personal:
        """Return v_i = w_1, as None."""
        return Personal(None)

    def own_model(self, state: Personal, received: Model, trainer: LocalTrainer) -> Model:
        """Return v_i."""
        del received
        return trainer.initial if state.model is None else state.model

    def answer(self, request: Message, state: Personal, trainer: LocalTrainer) -> tuple[Message, Personal]:
        """Return FedAvg's reply; train v_i with a pull towards the received model."""
        reply, _ = TrainingClient().answer(request, None, trainer)
        received = from_groups(request.groups, "model", trainer.schema)
        own = self.own_model(state, received, trainer)
        personal = trainer.train(own, proximal(received.weights, self.pull), purpose="personal batches")
        # If the shared update is not finite either, the server reports the divergence with a better reason.
        if is_finite(reply.groups["update"]) and not is_finite(personal.model.weights):
            raise RunError(
                f"a personal model is no longer finite: method.pull {self.pull} is too large for the learning rate "
                f"{personal.lr}; keep their product below 2, or lower local.optimizer.lr"
            )
        return reply, Personal(personal.model)

    def settle(self, state: Personal, delivered: Message) -> Personal:
        """Return the state unchanged: it does not depend on the delivered tensors."""
        del delivered
        return state
