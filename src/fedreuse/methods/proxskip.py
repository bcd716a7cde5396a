"""ProxSkip for consensus, or Scaffnew (Mishchenko et al., 2022): local steps with shifts, and a coin for communication.

    step        x_i <- x_i - lr (grad f_i(x_i) - h_i)                  until the shared coin of probability p falls
    then        w   <- sum alpha_i x_i;   h_i <- h_i + (p / lr) (w - x_i);   x_i <- w

A round is what lies between two communications: K ~ Geom(p) steps, drawn from the cohort's stream and named in the
request. With u_i = x_i - w_t, as the server decoded it, and move = w_t+1 - w_t, the shift is

    h_i <- h_i + rate * (move - u_i)

    mode        steps        rate               h_i is finished
    faithful    K ~ Geom(p)  p / lr             by the next request, which brings w_t+1: everybody in every round
    partial     round(1/p)   1 / (K_eff lr)     by a second exchange with those who trained: the others keep h_i

Both keep sum alpha_i h_i = 0, because w_t+1 - w_t is the weighted mean of the u_i. A client that missed its broadcast
knows only the sum of the moves since, and takes their mean for its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fedreuse.core.corrections import Correction
from fedreuse.core.errors import ConfigError, require
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, ServerHalf, methods
from fedreuse.core.model import Model, apply, difference, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.tensors import Tensors, add, scale, sub, zeros
from fedreuse.core.values import value
from fedreuse.methods.averaging import average, update_of, updates_of
from fedreuse.methods.scaffold import effective_steps

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer, Trained
    from fedreuse.core.message import Conversation
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population

__all__ = ["PLAIN_MEAN", "Mode", "ProxSkip", "ProxSkipClient", "ProxSkipServer", "ProxSkipState", "Shift", "finish"]

Mode = Literal["faithful", "partial"]

PLAIN_MEAN = "the shifts of all clients sum to zero only if the model moves by the plain mean of what was sent"
"""Why neither another aggregator nor another server step can be chosen."""


@methods.register("proxskip", refuses=dict.fromkeys(("aggregate", "step"), PLAIN_MEAN))
@dataclass(frozen=True)
class ProxSkip(MethodConfig):
    """Local steps with shifts that cancel the clients' drift; communication after every step with probability p.

    Args:
        p: Probability of communicating after a step, in (0, 1].
        mode: `faithful` is the paper's method; `partial` a heuristic for cohorts and for momentum, with
            round(1/p) steps.

    Example: `method: {name: proxskip, p: 0.04}`.
    """

    p: float = 0.04
    mode: Mode = "faithful"

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.p <= 1, "method.p must be in (0, 1]", self.p)

    @property
    def needs(self) -> Needs:
        """Its theory needs everybody in every round; its coins say how many steps are taken, and each is shifted."""
        return Needs(full_participation=True, corrections=True, steps=True)

    def halves(self, buffers: BufferPolicy) -> tuple[ProxSkipServer, ProxSkipClient]:
        """Both halves; buffers are averaged over those who trained."""
        del buffers
        return ProxSkipServer(self.p, self.mode), ProxSkipClient(self.p, self.mode)


@value
class ProxSkipState:
    """The model, and how often it has moved."""

    model: Model
    num_moves: int


@value
class Shift:
    """h_i; while it holds a model it waits: h_i = vector + rate * (mean move since that model, the `num_moves`-th)."""

    vector: Tensors
    rate: float = 0.0
    model: Tensors | None = None
    num_moves: int = 0


@dataclass(frozen=True)
class ProxSkipServer(ServerHalf[ProxSkipState]):
    """Tosses the shared coin, averages the points."""

    p: float
    mode: Mode

    def init(self, model: Model, population: Population) -> ProxSkipState:
        """The state before the first round."""
        del population
        return ProxSkipState(model, 0)

    def model(self, state: ProxSkipState) -> Model:
        """What is evaluated and deployed."""
        return state.model

    def round(self, state: ProxSkipState, cohort: Cohort) -> Conversation[ProxSkipState]:
        """All clients take the same number of steps; replies are averaged, and clients may be sent the result."""
        steps = self._steps(cohort)
        request = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        replies = yield {
            client: replace(request, values={"steps": steps, "move": state.num_moves, **self.said_to(client)})
            for client in cohort.clients
        }
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # nobody answered: the model stands still
        direction = average(updates_of(replies, state.model), cohort, "ratio", state.model)
        model, num_kept = apply(state.model, direction)
        after = ProxSkipState(model, state.num_moves + 1)
        if self.mode == "partial":
            moved = {"move": after.num_moves}
            told = Message("finish", {"model": model.weights}, moved, answers=(Answer("finished"),))
            yield dict.fromkeys(sorted(replies), told)
        return after, Events(events, {"kept variances": num_kept})

    def said_to(self, client: int) -> dict[str, float]:
        """What one client is told beside the others."""
        del client
        return {}

    def _steps(self, cohort: Cohort) -> int:
        if self.mode == "partial":
            return round(1 / self.p)
        here, everybody = len(cohort.clients), len(cohort.population)
        if here < everybody:
            raise ConfigError(
                f"method.mode is faithful, which needs every client, but round {cohort.round_number} has {here} of "
                f"{everybody}; set method.mode: partial to run the heuristic for cohorts"
            )
        return int(cohort.rng("local steps").geometric(self.p))


@dataclass(frozen=True)
class ProxSkipClient(ClientHalf[Any]):
    """Steps with its shift; finishes the shift when it hears where the model went."""

    p: float
    mode: Mode
    wants_delivered: ClassVar[bool] = True

    def init(self) -> None:
        """No shift before the first training, which stands for zero."""

    def answer(self, request: Message, state: Shift | None, trainer: LocalTrainer) -> tuple[Message, Shift]:
        """Finish the shift; if that is not all, take the steps and send how far they led."""
        weights = request.groups["model"]
        num_moves: int = request.values["move"]  # type: ignore[assignment]  # what the server half says
        shift = finish(state, weights, num_moves)
        if request.kind == "finish":
            return Message("finished"), Shift(shift)
        update, rate = self.train(from_groups(request.groups, "model", trainer.schema), shift, request, trainer)
        return Message("update", to_groups(update, "update")), Shift(shift, rate, weights, num_moves)

    def settle(self, state: Shift, delivered: Message) -> Shift:
        """The own update counts as the server will see it, so that the weighted sum of all shifts stays zero."""
        if delivered.kind == "finished":
            return state
        return replace(state, vector=sub(state.vector, scale(delivered.groups["update"], state.rate)))

    def train(self, received: Model, shift: Tensors, request: Message, trainer: LocalTrainer) -> tuple[Model, float]:
        """The update after K steps of gradient minus shift, and the rate of the shift."""
        steps: int = request.values["steps"]  # type: ignore[assignment]  # what the server half says
        trained = trainer.train(received, Correction(shift=scale(shift, -1)), steps)
        return difference(trained.model, received), self.rate(trained, steps)

    def rate(self, trained: Trained, steps: int) -> float:
        """p / lr; in partial mode 1 / (K_eff lr); 0 where a learning rate of 0 moved nothing."""
        if self.mode == "partial":
            return 1 / (effective_steps(steps, trained.momentum) * trained.lr) if trained.lr else 0.0
        if trained.momentum:
            raise ConfigError(
                f"method.mode is faithful, which is defined without momentum, but local.optimizer.momentum is "
                f"{trained.momentum}; set it to 0, or set method.mode: partial"
            )
        return self.p / trained.lr if trained.lr else 0.0


def finish(state: Shift | None, model: Tensors, num_moves: int) -> Tensors:
    """h_i, now that the model has moved on; zero at first contact."""
    if state is None:
        return zeros(model.schema)
    if state.model is None:
        return state.vector
    return add(state.vector, scale(sub(model, state.model), state.rate / (num_moves - state.num_moves)))
