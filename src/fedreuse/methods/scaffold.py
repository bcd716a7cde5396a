"""SCAFFOLD (Karimireddy et al., 2020): control variates correct the drift of local steps.

    local step     gradient - c_i + c
    option I       c_i+ = mean gradient of client i at w_t                        one more pass over its data
    option II      c_i+ = c_i - c + (w_t - y_i) / (K_eff lr)
    sent           dy_i = y_i - w_t and dc_i = c_i+ - c_i
    server         w <- w + server_lr * sum_S omega_i dy_i;   c <- c + sum_S alpha_i dc_i  (c = sum_all alpha_i c_i)

With heavy-ball momentum beta the displacement is lr * sum_j a_j (...), a_j = (1 - beta^(K-j)) / (1 - beta). If the
correction enters before the momentum buffer (`inside`), K_eff = sum_j a_j; dividing by K instead diverges. If it enters
after the buffer (`outside`), K_eff = K: the control then includes the momentum's amplification.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fedreuse.core.corrections import Correction
from fedreuse.core.errors import require
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, methods
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.registry import optional_part
from fedreuse.core.tensors import Tensors, add, scale, sub, weighted_sum, zeros
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import Aggregator, aggregators, fresh_contributions, judged
from fedreuse.methods.aggregators.mean import chosen_aggregator
from fedreuse.methods.averaging import update_of, updates_of
from fedreuse.methods.server_steps.server_step import ServerStep, advance, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step
from fedreuse.methods.stepping import SteppingServer

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer, Trained
    from fedreuse.core.message import Conversation, Replies
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population

__all__ = [
    "Control", "Scaffold", "ScaffoldClient", "ScaffoldServer", "ScaffoldState", "as_per_step", "effective_steps",
]  # fmt: skip

_MOST_PER_STEP = 1e6
"""Largest accepted 1 / (steps x learning rate): one step at a rate of 1e-6."""


@methods.register("scaffold")
@dataclass(frozen=True)
class Scaffold(MethodConfig):
    """SCAFFOLD: control variates at server and clients correct the drift of local steps.

    Args:
        option: `I`: the control is the gradient at the received model; `II`: it follows from the update.
        momentum: Where the correction enters: `inside` the momentum buffer, or `outside`, after it.
        wire: `literal` sends the update and the change of the control; `derived` the update and one number, from which
            the server computes the change (option II only).
        controls: The mean of controls is `weighted` by examples, or `uniform` as published.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        aggregate: Aggregator of the round's updates; null is the weighted mean.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: scaffold, wire: derived}`.
    """

    option: Literal["I", "II"] = "II"
    momentum: Literal["inside", "outside"] = "inside"
    wire: Literal["literal", "derived"] = "literal"
    controls: Literal["weighted", "uniform"] = "weighted"
    server_lr: float = 1.0
    aggregate: Aggregator | None = optional_part(aggregators)
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges; refuse option I with `wire: derived` or `momentum: outside`."""
        chosen_step(self.step, self.server_lr)
        is_path = self.option == "II"
        require(
            is_path or self.wire == "literal",
            "method.wire: derived needs option: II (option I's control must be sent)",
            self.option,
        )
        require(
            is_path or self.momentum == "inside",
            "method.momentum: outside needs option: II (option I's control lacks the momentum's amplification)",
            self.option,
        )

    @property
    def needs(self) -> Needs:
        """Corrections of every local step; for option I, a gradient at the received model."""
        return Needs(gradients=self.option == "I", corrections=True)

    @property
    def uplink_groups(self) -> tuple[str, ...]:
        """Groups of a reply: the update, and the change of the control unless it is derived."""
        return ("update", "control_change") if self.wire == "literal" else ("update",)

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """Groups of a request: the model and the server's control."""
        return ("model", "control")

    def halves(self, buffers: BufferPolicy) -> tuple[ScaffoldServer, ScaffoldClient]:
        """Return both halves; buffers are averaged over the clients that trained."""
        del buffers
        return ScaffoldServer(self), ScaffoldClient(self)


@value
class ScaffoldState:
    """The model, the server's control c, and the state of the server step."""

    model: Model
    control: Tensors
    step: Any = None


@value
class Control:
    """The client's control c_i; None before its first training means zero."""

    control: Tensors | None


@dataclass(frozen=True)
class ScaffoldServer(SteppingServer[ScaffoldState]):
    """The server half: averages updates, and keeps c equal to the mean of all c_i."""

    config: Scaffold

    def init(self, model: Model, population: Population) -> ScaffoldState:
        """Return the initial state; all controls are zero."""
        del population
        return ScaffoldState(model, zeros(model.weights.schema), self.step.init(model.weights))

    @property
    def step(self) -> ServerStep:
        """The server step that moves the model."""
        return chosen_step(self.config.step, self.config.server_lr)

    def round(self, state: ScaffoldState, cohort: Cohort) -> Conversation[ScaffoldState]:
        """Send the model and c; average the replies."""
        groups = {**to_groups(state.model, "model"), "control": state.control}
        request = Message("train", groups, answers=(self._answer(state),))
        replies = yield dict.fromkeys(cohort.clients, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # no reply arrived: the model is unchanged
        contributions = fresh_contributions(updates_of(replies, state.model), cohort)
        made = chosen_aggregator(self.config.aggregate).aggregate(contributions, cohort, state.model.schema)
        model, step, num_kept = advance(self.step, state.model, made.direction, state.step, made.statistics)
        after = ScaffoldState(model, self._control(state, cohort, replies), step)
        return after, Events(judged(events, made.verdicts), {"kept variances": num_kept})

    def _answer(self, state: ScaffoldState) -> Answer:
        """Return the expected reply: an update, and the change of the control or the number it follows from."""
        update = update_of(state.model)
        if self.config.wire == "derived":
            return replace(update, values={"per_step": float})
        return replace(update, groups={**update.groups, "control_change": state.control.schema})

    def _control(self, state: ScaffoldState, cohort: Cohort, replies: Replies) -> Tensors:
        population = cohort.population
        terms = [(1.0, state.control)]
        for client in sorted(replies):
            # Shares of the whole population, not of the cohort: absent clients keep their c_i, which stay part of c.
            share = population.share(client) if self.config.controls == "weighted" else 1 / len(population)
            terms.append((share, self._change(state, replies[client])))
        return weighted_sum(terms, state.control.schema)

    def _change(self, state: ScaffoldState, reply: Message) -> Tensors:
        if self.config.wire == "literal":
            return reply.groups["control_change"]
        return derived_change(reply.groups["update"], state.control, as_per_step(reply.values["per_step"]))


@dataclass(frozen=True)
class ScaffoldClient(ClientHalf[Any]):
    """The client half: trains with the correction c - c_i, and updates c_i as the server decodes the reply."""

    config: Scaffold
    wants_delivered: ClassVar[bool] = True

    def init(self) -> Control:
        """Return c_i = 0."""
        return Control(None)

    def answer(self, request: Message, state: Control, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Train; send the update, and the change of the control or the number it follows from."""
        received = from_groups(request.groups, "model", trainer.schema)
        control = request.groups["control"]
        own = state.control if state.control is not None else zeros(control.schema)
        place: Literal["before_momentum", "after_momentum"]
        place = "before_momentum" if self.config.momentum == "inside" else "after_momentum"
        trained = trainer.train(received, Correction(shift=sub(control, own), place=place))
        update = difference(trained.model, received)
        # The mean gradient along the path is -update * per_step: both ends can compute the control from the update.
        per_step = 1 / (self._steps(trained) * trained.lr) if trained.steps else 0.0
        groups = to_groups(update, "update")
        if self.config.wire == "derived":
            return Message("update", groups, {"per_step": per_step}), _Pending(own, control, per_step)
        if self.config.option == "I":
            names = [spec.name for spec in trainer.schema.weights]
            groups["control_change"] = sub(trainer.gradient(received, names, BatchPlan(is_mean=True), "control"), own)
        else:
            groups["control_change"] = derived_change(update.weights, control, per_step)
        return Message("update", groups), _Pending(own, control, None)

    def settle(self, state: _Pending, delivered: Message) -> Control:
        """Return c_i + dc_i, with dc_i as the server decodes it."""
        # With a lossy codec the own dc_i would differ from the server's: c would drift away from the mean of the c_i.
        if state.per_step is None:
            return Control(add(state.own, delivered.groups["control_change"]))
        return Control(add(state.own, derived_change(delivered.groups["update"], state.control, state.per_step)))

    def _steps(self, trained: Trained) -> float:
        is_inside = self.config.momentum == "inside"
        return effective_steps(trained.steps, trained.momentum) if is_inside else float(trained.steps)


@dataclass(frozen=True, eq=False)
class _Pending:
    """Values for `settle`; never stored."""

    own: Tensors
    control: Tensors
    per_step: float | None


def derived_change(update: Tensors, control: Tensors, per_step: float) -> Tensors:
    """Return dc_i = -c - dy_i / (K_eff lr), which both ends can compute; zero for a client that took no step."""
    if not per_step:
        return zeros(control.schema)
    return sub(scale(update, -per_step), control)


def effective_steps(steps: int, momentum: float) -> float:
    """Return K_eff = sum_j (1 - beta^(K-j)) / (1 - beta), j = 0 .. K-1; K without momentum."""
    return sum((1 - momentum ** (steps - number)) / (1 - momentum) for number in range(steps))


def as_per_step(number: object) -> float:
    """Return a client's 1 / (K_eff lr), or 0 (no step) for a value that is not a number in the accepted range."""
    return number if isinstance(number, float) and 0 <= number <= _MOST_PER_STEP else 0.0
