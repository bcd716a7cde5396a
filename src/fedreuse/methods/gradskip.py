"""GradSkip (Maranjyan, Safaryan, Richtarik, 2022): ProxSkip whose clients may stop computing before they communicate.

At every local step the client stops with probability 1 - q_i. It then uses its gradient as its shift and does not move
until the next communication, because gradient and shift now cancel:

    h'_i  = grad f_i(x_i) if the client stopped, else h_i
    w     = sum alpha_i (x_i - (lr / p) h'_i) = sum alpha_i (x_i - (lr / p) (h'_i - h_i))      as sum alpha_i h_i = 0
    h_i  <- h'_i + (p / lr) (w - x_i)

So u_i = x_i - w_t - (lr / p) (h'_i - h_i) is sent, and h_i <- h_i + (p / lr) (move - u_i) as in ProxSkip. In a round
min(K, L) gradients are computed, K ~ Geom(p), L ~ Geom(1 - q_i). In partial mode a client only ends after min(K, L)
steps: with the stochastic gradients of a network the term (lr / p) (h'_i - h_i) is mostly noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fedreuse.core.corrections import Correction
from fedreuse.core.errors import ConfigError, require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.model import Model, difference
from fedreuse.core.needs import Needs
from fedreuse.core.tensors import scale, sub
from fedreuse.methods.proxskip import PLAIN_MEAN, Mode, ProxSkipClient, ProxSkipServer, ProxSkipState

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population
    from fedreuse.core.tensors import Tensors

__all__ = ["GradSkip", "GradSkipClient", "GradSkipServer"]


@methods.register("gradskip", refuses=dict.fromkeys(("aggregate", "step"), PLAIN_MEAN))
@dataclass(frozen=True)
class GradSkip(MethodConfig):
    """GradSkip: ProxSkip whose clients may stop computing early, with fewer gradients for the same communication.

    Args:
        p: Probability of communicating after a step, in (0, 1].
        q: Probability of continuing at a step, in [0, 1]; one for all clients, or a list with one per client.
        mode: `faithful` is the published method; `partial` is a heuristic for cohorts and for momentum.

    Example: `method: {name: gradskip, p: 0.04}`.
    """

    p: float = 0.04
    q: float | tuple[float, ...] = 0.95
    mode: Mode = "faithful"

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.p <= 1, "method.p must be in (0, 1]", self.p)
        chances = self.q if isinstance(self.q, tuple) else (self.q,)
        require(all(0 <= chance <= 1 for chance in chances), "method.q must be in [0, 1]", self.q)

    @property
    def needs(self) -> Needs:
        """Full participation (for the theory), a given number of local steps, and a correction of each."""
        return Needs(full_participation=True, corrections=True, steps=True)

    def halves(self, buffers: BufferPolicy) -> tuple[GradSkipServer, GradSkipClient]:
        """Return ProxSkip's halves with early stopping; buffers are averaged over the clients that trained."""
        del buffers
        return GradSkipServer(self.p, self.mode, self.q), GradSkipClient(self.p, self.mode)


@dataclass(frozen=True)
class GradSkipServer(ProxSkipServer):
    """The server half: ProxSkip's, which also sends each client its q."""

    q: float | tuple[float, ...]

    def init(self, model: Model, population: Population) -> ProxSkipState:
        """Return ProxSkip's state; check the number of probabilities."""
        if isinstance(self.q, tuple) and len(self.q) != len(population):
            raise ConfigError(f"method.q has {len(self.q)} numbers for {len(population)} clients; give one for each")
        return super().init(model, population)

    def values_for(self, client: int) -> dict[str, float]:
        """Return the client's probability of continuing."""
        return {"q": self.q[client] if isinstance(self.q, tuple) else self.q}


@dataclass(frozen=True)
class GradSkipClient(ProxSkipClient):
    """The client half: may stop at every step."""

    def train(self, received: Model, shift: Tensors, request: Message, trainer: LocalTrainer) -> tuple[Model, float]:
        """Train as ProxSkip until the client stops; then, in faithful mode, add one gradient for the shift."""
        steps: int = request.values["steps"]  # type: ignore[assignment]  # set by the server half
        q: float = request.values["q"]  # type: ignore[assignment]
        stop = int(trainer.rng("stop").geometric(1 - q)) if q < 1 else steps + 1
        # The step at which the client stops computes the gradient for the shift instead of moving: stop - 1 moves.
        leaps = self.mode == "faithful" and stop <= steps
        trained = trainer.train(received, Correction(shift=scale(shift, -1)), stop - 1 if leaps else min(steps, stop))
        update, rate = difference(trained.model, received), self.rate(trained, steps)
        if not leaps or not rate:
            return update, rate
        # One step without the shift is the gradient times lr, with weight decay and clipping.
        ahead = trainer.train(trained.model, steps=1, purpose="stop batches")
        gradient = scale(sub(trained.model.weights, ahead.model.weights), 1 / trained.lr)
        return replace(update, weights=sub(update.weights, scale(sub(gradient, shift), 1 / rate))), rate
