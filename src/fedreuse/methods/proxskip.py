"""ProxSkip for consensus, or Scaffnew (Mishchenko et al., 2022): shifted local steps and random communication.

    step        x_i <- x_i - lr (grad f_i(x_i) - h_i)                  until the shared coin of probability p falls
    then        w   <- sum alpha_i x_i;   h_i <- h_i + (p / lr) (w - x_i);   x_i <- w

A round here is the time between two communications: K ~ Geom(p) steps, drawn from the cohort's stream and sent in the
request. With u_i = x_i - w_t, as the server decoded it, and move = w_t+1 - w_t, the shift is

    h_i <- h_i + rate * (move - u_i)

    mode        steps        rate               h_i is finished
    faithful    K ~ Geom(p)  p / lr             by the next request, which carries w_t+1; all clients in every round
    partial     round(1/p)   1 / (K_eff lr)     by a second exchange with the clients that trained; others keep h_i

Both keep sum alpha_i h_i = 0, because w_t+1 - w_t is the weighted mean of the u_i. A client that missed its broadcast
knows only the sum of the moves since then, and uses their mean.
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

PLAIN_MEAN = "the shifts of all clients sum to zero only if the model moves by the plain mean of the updates"
"""Reason why neither the aggregator nor the server step can be changed."""


@methods.register("proxskip", refuses=dict.fromkeys(("aggregate", "step"), PLAIN_MEAN))
@dataclass(frozen=True)
class ProxSkip(MethodConfig):
    """ProxSkip: shifted local steps that cancel client drift; communication after every step with probability p.

    Args:
        p: Probability of communicating after a step, in (0, 1].
        mode: `faithful` is the published method; `partial` is a heuristic for cohorts and for momentum, with
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
        """Full participation (for the theory), a given number of local steps, and a correction of each."""
        return Needs(full_participation=True, corrections=True, steps=True)

    def halves(self, buffers: BufferPolicy) -> tuple[ProxSkipServer, ProxSkipClient]:
        """Return both halves; buffers are averaged over the clients that trained."""
        del buffers
        return ProxSkipServer(self.p, self.mode), ProxSkipClient(self.p, self.mode)


@value
class ProxSkipState:
    """The model, and the number of its moves."""

    model: Model
    num_moves: int


@value
class Shift:
    """The shift h_i, which may wait for the model's next move.

    With a `model`: h_i = vector + rate * (mean move since that model, which was the `num_moves`-th).
    """

    vector: Tensors
    rate: float = 0.0
    model: Tensors | None = None
    num_moves: int = 0


@dataclass(frozen=True)
class ProxSkipServer(ServerHalf[ProxSkipState]):
    """The server half: draws the common number of steps and averages the updates."""

    p: float
    mode: Mode

    def init(self, model: Model, population: Population) -> ProxSkipState:
        """Return the state before the first round."""
        del population
        return ProxSkipState(model, 0)

    def model(self, state: ProxSkipState) -> Model:
        """Return the model that is evaluated and deployed."""
        return state.model

    def round(self, state: ProxSkipState, cohort: Cohort) -> Conversation[ProxSkipState]:
        """Let all clients take the same number of steps and average the replies; in partial mode, send the result."""
        steps = self._steps(cohort)
        request = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        replies = yield {
            client: replace(request, values={"steps": steps, "move": state.num_moves, **self.values_for(client)})
            for client in cohort.clients
        }
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # no reply arrived: the model is unchanged
        # The plain mean, without server step: sum alpha_i h_i = 0 holds only if the move is the mean of the u_i.
        direction = average(updates_of(replies, state.model), cohort, "ratio", state.model)
        model, num_kept = apply(state.model, direction)
        after = ProxSkipState(model, state.num_moves + 1)
        if self.mode == "partial":
            # A client of a cohort may not be back for many rounds; it must learn this round's move now, because its
            # shift would otherwise absorb the moves of rounds in which it took no part.
            moved = {"move": after.num_moves}
            finish_request = Message("finish", {"model": model.weights}, moved, answers=(Answer("finished"),))
            yield dict.fromkeys(sorted(replies), finish_request)
        return after, Events(events, {"kept variances": num_kept})

    def values_for(self, client: int) -> dict[str, float]:
        """Return additional request values for one client."""
        del client
        return {}

    def _steps(self, cohort: Cohort) -> int:
        if self.mode == "partial":
            return round(1 / self.p)
        here, population = len(cohort.clients), len(cohort.population)
        if here < population:
            raise ConfigError(
                f"method.mode is faithful, which needs every client, but round {cohort.round_number} has {here} of "
                f"{population}; set method.mode: partial to run the heuristic for cohorts"
            )
        return int(cohort.rng("local steps").geometric(self.p))


@dataclass(frozen=True)
class ProxSkipClient(ClientHalf[Any]):
    """The client half: takes shifted steps; updates the shift once it knows the model's move."""

    p: float
    mode: Mode
    wants_delivered: ClassVar[bool] = True

    def init(self) -> None:
        """Return None, which means a shift of zero."""

    def answer(self, request: Message, state: Shift | None, trainer: LocalTrainer) -> tuple[Message, Shift]:
        """Finish the shift; for a training request, take the steps and send the update."""
        weights = request.groups["model"]
        num_moves: int = request.values["move"]  # type: ignore[assignment]  # set by the server half
        shift = finish(state, weights, num_moves)
        if request.kind == "finish":
            return Message("finished"), Shift(shift)
        update, rate = self.train(from_groups(request.groups, "model", trainer.schema), shift, request, trainer)
        return Message("update", to_groups(update, "update")), Shift(shift, rate, weights, num_moves)

    def settle(self, state: Shift, delivered: Message) -> Shift:
        """Subtract the update as the server decodes it, so that the weighted sum of all shifts stays zero."""
        if delivered.kind == "finished":
            return state
        return replace(state, vector=sub(state.vector, scale(delivered.groups["update"], state.rate)))

    def train(self, received: Model, shift: Tensors, request: Message, trainer: LocalTrainer) -> tuple[Model, float]:
        """Return the update after K steps of gradient minus shift, and the rate of the shift."""
        steps: int = request.values["steps"]  # type: ignore[assignment]  # set by the server half
        trained = trainer.train(received, Correction(shift=scale(shift, -1)), steps)
        return difference(trained.model, received), self.rate(trained, steps)

    def rate(self, trained: Trained, steps: int) -> float:
        """Return p / lr; in partial mode 1 / (K_eff lr); 0 if the learning rate is 0."""
        if self.mode == "partial":
            return 1 / (effective_steps(steps, trained.momentum) * trained.lr) if trained.lr else 0.0
        if trained.momentum:
            raise ConfigError(
                f"method.mode is faithful, which is defined without momentum, but local.optimizer.momentum is "
                f"{trained.momentum}; set it to 0, or set method.mode: partial"
            )
        return self.p / trained.lr if trained.lr else 0.0


def finish(state: Shift | None, model: Tensors, num_moves: int) -> Tensors:
    """Return h_i after the model's move; zero at first contact."""
    if state is None:
        return zeros(model.schema)
    if state.model is None:
        return state.vector
    # Dividing by the number of moves gives the mean move, for a client that missed some broadcasts.
    return add(state.vector, scale(sub(model, state.model), state.rate / (num_moves - state.num_moves)))
