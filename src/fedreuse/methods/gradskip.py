"""GradSkip (Maranjyan, Safaryan, Richtarik, 2022): ProxSkip whose clients may stop computing before they communicate.

At every local step a private coin falls with probability 1 - q_i. Then the client takes its gradient for its shift
and stands still until the shared coin falls, because gradient and shift now cancel:

    h'_i  = grad f_i(x_i) if the private coin fell, else h_i
    w     = sum alpha_i (x_i - (lr / p) h'_i) = sum alpha_i (x_i - (lr / p) (h'_i - h_i))      as sum alpha_i h_i = 0
    h_i  <- h'_i + (p / lr) (w - x_i)

So u_i = x_i - w_t - (lr / p) (h'_i - h_i) is sent, and h_i <- h_i + (p / lr) (move - u_i) as in ProxSkip. In a round
min(K, L) gradients are computed, K ~ Geom(p), L ~ Geom(1 - q_i). In partial mode a client merely ends after min(K, L)
steps: with the stochastic gradients of a network the leap (lr / p) (h'_i - h_i) is mostly noise.
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
    """ProxSkip whose clients stop computing when a private coin falls: fewer gradients for the same communication.

    Args:
        p: Probability of communicating after a step, in (0, 1].
        q: Probability of going on at a step, in [0, 1]; one for all clients, or one for each.
        mode: `faithful` is the paper's method; `partial` a heuristic for cohorts and for momentum.

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
        """Its theory needs everybody in every round; its coins say how many steps are taken, and each is shifted."""
        return Needs(full_participation=True, corrections=True, steps=True)

    def halves(self, buffers: BufferPolicy) -> tuple[GradSkipServer, GradSkipClient]:
        """ProxSkip's halves with a private coin; buffers are averaged over those who trained."""
        del buffers
        return GradSkipServer(self.p, self.mode, self.q), GradSkipClient(self.p, self.mode)


@dataclass(frozen=True)
class GradSkipServer(ProxSkipServer):
    """Tells every client its q."""

    q: float | tuple[float, ...]

    def init(self, model: Model, population: Population) -> ProxSkipState:
        """As ProxSkip; each client has its own q, or all have one."""
        if isinstance(self.q, tuple) and len(self.q) != len(population):
            raise ConfigError(f"method.q has {len(self.q)} numbers for {len(population)} clients; give one for each")
        return super().init(model, population)

    def said_to(self, client: int) -> dict[str, float]:
        """The probability to go on."""
        return {"q": self.q[client] if isinstance(self.q, tuple) else self.q}


@dataclass(frozen=True)
class GradSkipClient(ProxSkipClient):
    """Tosses its coin at every step."""

    def train(self, received: Model, shift: Tensors, request: Message, trainer: LocalTrainer) -> tuple[Model, float]:
        """As ProxSkip until the coin falls; then, if faithful, one gradient for the shift in place of the rest."""
        steps: int = request.values["steps"]  # type: ignore[assignment]  # what the server half says
        q: float = request.values["q"]  # type: ignore[assignment]
        stop = int(trainer.rng("stop").geometric(1 - q)) if q < 1 else steps + 1
        leaps = self.mode == "faithful" and stop <= steps
        trained = trainer.train(received, Correction(shift=scale(shift, -1)), stop - 1 if leaps else min(steps, stop))
        update, rate = difference(trained.model, received), self.rate(trained, steps)
        if not leaps or not rate:
            return update, rate
        # one step without the shift is the gradient times lr, weight decay and clipping included
        ahead = trainer.train(trained.model, steps=1, purpose="stop batches")
        gradient = scale(sub(trained.model.weights, ahead.model.weights), 1 / trained.lr)
        return replace(update, weights=sub(update.weights, scale(sub(gradient, shift), 1 / rate))), rate
