"""Common parts of SCALLION and SCAFCOM (Huang, Li, Li, 2024): SCAFFOLD whose clients send one compressed vector.

    local step    gradient - c_i + c                               from w_t to y_i;  p_i = 1 / (K_eff,i lr)
    g_i         = c_i - c - p_i (y_i - w_t)                        the mean gradient on the way
    d_i         = share (g_i - c_i)                                the increment of c_i; or
    d_i         = v_i - c_i, v_i <- (1 - share) v_i + share g_i    with an average
    sent          e_i = C(-d_i / p_i), in units of an update, and p_i
    c_i        <- c_i - p_i e_i                                    from the decoded e_i
    server        w <- w + server_lr * sum_S omega_i (e_i - c / p_i);   c <- c - sum_S alpha_i p_i e_i

With a lossless C and share 1 this is SCAFFOLD with option II. Increments are sent in units of an update (divided by
-p_i), so that codecs, norms and thresholds see numbers of the same scale as in every other method.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.links.plain import Plain
from fedreuse.core.corrections import Correction
from fedreuse.core.message import Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.tensors import Tensors, add, scale, sub, weighted_sum, zeros
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import Aggregator, fresh_contributions, judged
from fedreuse.methods.aggregators.mean import chosen_aggregator
from fedreuse.methods.averaging import update_of, updates_of
from fedreuse.methods.scaffold import as_per_step, effective_steps
from fedreuse.methods.server_steps.server_step import ServerStep, advance
from fedreuse.methods.server_steps.sgd import chosen_step
from fedreuse.methods.stepping import SteppingServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation, Replies
    from fedreuse.core.method import BufferPolicy, Link
    from fedreuse.core.population import Population

__all__ = ["Controls", "IncrementClient", "IncrementMethod", "IncrementServer", "IncrementState"]

_LEAST_PER_STEP = 1e-7
"""Smallest accepted 1 / (steps x learning rate): a million steps at a rate of ten. The server divides by it."""


@value
class IncrementState:
    """The model, the server's control c, and the state of the server step."""

    model: Model
    control: Tensors
    step: Any = None


@value
class Controls:
    """The client's control c_i and its average v_i; None before its first training means zero."""

    control: Tensors | None
    average: Tensors | None


class IncrementMethod(MethodConfig):
    """Base class of both methods, which define their settings and the `client` that computes increments."""

    codec: Codec
    server_lr: float
    aggregate: Aggregator | None
    step: ServerStep | None

    @property
    def needs(self) -> Needs:
        """Corrections of every local step, by the controls."""
        return Needs(corrections=True)

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """Groups of a request: the model and the server's control."""
        return ("model", "control")

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The codec, without error feedback: the controls already carry the part that was not sent."""
        return {"update": Plain(self.codec)}

    @property
    @abstractmethod
    def client(self) -> IncrementClient:
        """The client half, which computes the increment."""

    def halves(self, buffers: BufferPolicy) -> tuple[IncrementServer, IncrementClient]:
        """Return both halves; buffers are averaged over the clients that trained."""
        del buffers
        return IncrementServer(chosen_aggregator(self.aggregate), chosen_step(self.step, self.server_lr)), self.client


@dataclass(frozen=True)
class IncrementServer(SteppingServer[IncrementState]):
    """The server half: averages the updates that increments imply, and keeps c equal to the mean of all c_i."""

    aggregate: Aggregator
    step: ServerStep

    def init(self, model: Model, population: Population) -> IncrementState:
        """Return the initial state; all controls are zero."""
        del population
        return IncrementState(model, zeros(model.weights.schema), self.step.init(model.weights))

    def round(self, state: IncrementState, cohort: Cohort) -> Conversation[IncrementState]:
        """Send the model and c; average the updates that the replies imply."""
        groups = {**to_groups(state.model, "model"), "control": state.control}
        answer = replace(update_of(state.model), values={"per_step": float})
        replies = yield dict.fromkeys(cohort.clients, Message("train", groups, answers=(answer,)))
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # no reply arrived: the model is unchanged
        paces = {client: _pace(replies[client]) for client in sorted(replies)}
        updates = {
            client: replace(update, weights=_implied(update.weights, state.control, paces[client]))
            for client, update in updates_of(replies, state.model).items()
        }
        made = self.aggregate.aggregate(fresh_contributions(updates, cohort), cohort, state.model.schema)
        model, step, num_kept = advance(self.step, state.model, made.direction, state.step, made.statistics)
        after = IncrementState(model, _renewed(state.control, cohort, replies, paces), step)
        return after, Events(judged(events, made.verdicts), {"kept variances": num_kept})


@dataclass(frozen=True)
class IncrementClient(ClientHalf[Any]):
    """The client half: trains with the correction c - c_i, sends the increment of c_i, and updates c_i as decoded."""

    share: float
    has_average: bool
    wants_delivered: ClassVar[bool] = True

    def init(self) -> Controls:
        """Return c_i = v_i = 0."""
        return Controls(None, None)

    def answer(self, request: Message, state: Controls, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Train; send the increment in units of an update, and the factor p_i between the two."""
        received = from_groups(request.groups, "model", trainer.schema)
        control = request.groups["control"]
        own = zeros(control.schema) if state.control is None else state.control
        trained = trainer.train(received, Correction(shift=sub(control, own), place="before_momentum"))
        update = difference(trained.model, received)
        # path = 1 / p_i: the distance that a constant gradient of 1 would have moved the weights.
        path = effective_steps(trained.steps, trained.momentum) * trained.lr
        per_step = 1 / path if path else 0.0
        increment, average = zeros(control.schema), state.average
        if per_step and self.has_average:
            gradient = weighted_sum([(1.0, own), (-1.0, control), (-per_step, update.weights)], own.schema)
            average = weighted_sum([(1 - self.share, average or zeros(own.schema)), (self.share, gradient)], own.schema)
            increment = scale(sub(own, average), path)
        elif per_step:
            # -share (g_i - c_i) / p_i, in which c_i cancels.
            increment = weighted_sum([(self.share, update.weights), (self.share * path, control)], own.schema)
        groups = {**to_groups(update, "update"), "update": increment}
        return Message("update", groups, {"per_step": per_step}), _Pending(own, average, per_step)

    def settle(self, state: _Pending, delivered: Message) -> Controls:
        """Return c_i - p_i e_i, with e_i as the server decodes it, so that c stays the mean of all c_i."""
        return Controls(add(state.own, scale(delivered.groups["update"], -state.per_step)), state.average)


@dataclass(frozen=True, eq=False)
class _Pending:
    """Values for `settle`; never stored."""

    own: Tensors
    average: Tensors | None
    per_step: float


def _pace(reply: Message) -> float:
    """Return p_i; 0 for a client that took no step or reports an impossible number."""
    per_step = as_per_step(reply.values["per_step"])
    return per_step if per_step >= _LEAST_PER_STEP else 0.0


def _implied(increment: Tensors, control: Tensors, per_step: float) -> Tensors:
    """Return e_i - c / p_i, the update that an increment implies."""
    if not per_step:
        return zeros(control.schema)
    return weighted_sum([(1.0, increment), (-1 / per_step, control)], control.schema)


def _renewed(control: Tensors, cohort: Cohort, replies: Replies, paces: dict[int, float]) -> Tensors:
    """Return c - sum_S alpha_i p_i e_i."""
    share = cohort.population.share
    terms = [(-share(client) * pace, replies[client].groups["update"]) for client, pace in paces.items()]
    return weighted_sum([(1.0, control), *terms], control.schema)
