"""FedAsync (Xie et al., 2019): every reply is mixed into the model at once, with less weight the staler it is.

a_t   = alpha * (1 + tau)^-staleness                     tau: steps of the server since the request
w_t+1 = (1 - a_t) w_t + a_t (w_(t - tau) + x_i)          x_i: the client's update of w_(t - tau)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fedreuse.core.errors import require
from fedreuse.core.int_map import IntMap
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.model import Model, apply, combine
from fedreuse.core.needs import Needs
from fedreuse.core.values import value
from fedreuse.methods.averaging import TrainingClient
from fedreuse.methods.buffered import AsynchronousServer, check_buffer
from fedreuse.methods.server_steps.sgd import SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population
    from fedreuse.methods.buffered import Arrival
    from fedreuse.methods.server_steps.server_step import ServerStep

__all__ = ["FedAsync", "FedAsyncServer", "FedAsyncState"]

_REFUSED = "it mixes one reply at a time into the model"


@methods.register("fedasync", refuses={"aggregate": _REFUSED, "step": _REFUSED, "buffer": _REFUSED})
@dataclass(frozen=True)
class FedAsync(MethodConfig):
    """FedAsync: each reply moves the model towards the model that its client trained.

    `rounds.cohort` is the number of clients that train at the same time; a round is one reply. Simulations need
    `devices`.

    Args:
        alpha: Weight of a reply without staleness, in (0, 1].
        staleness: Exponent a of the factor (1 + tau)^-a on a reply that is tau steps old, at least 0; 0: no discount.
        mu: Strength of the proximal term, which pulls every local step towards the received model; at least 0.

    Example: `method: {name: fedasync, alpha: 0.6}`.
    """

    alpha: float = 0.6
    staleness: float = 0.5
    mu: float = 0.005

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.alpha <= 1, "method.alpha must be in (0, 1]", self.alpha)
        require(self.mu >= 0, "method.mu must not be negative", self.mu)
        check_buffer(1, self.staleness)

    @property
    def needs(self) -> Needs:
        """Simulated time, and corrections of local steps for the proximal term."""
        return Needs(corrections=self.mu > 0, buffer=1)

    def halves(self, buffers: BufferPolicy) -> tuple[FedAsyncServer, TrainingClient]:
        """Return both halves; buffers and counters are mixed like weights."""
        del buffers
        return FedAsyncServer(self.alpha, self.staleness), TrainingClient(self.mu)


@value
class FedAsyncState:
    """The model, and the models that requests under way were sent, by round."""

    model: Model
    versions: IntMap[Model] = field(default_factory=IntMap, metadata={"by": "round"})
    step: None = None


@dataclass(frozen=True)
class FedAsyncServer(AsynchronousServer[FedAsyncState]):
    """The server half: one reply per round, mixed into the model."""

    alpha: float = 0.6
    staleness: float = 0.5
    buffer: ClassVar[int] = 1  # type: ignore[misc]  # a field in other servers
    step: ClassVar[ServerStep] = SgdStep()  # evaluates the model itself

    def init(self, model: Model, population: Population) -> FedAsyncState:
        """Return the state before the first round."""
        del population
        return FedAsyncState(model)

    def merge(
        self, state: FedAsyncState, arrived: Mapping[int, Arrival], cohort: Cohort
    ) -> tuple[FedAsyncState, Mapping[str, int], dict[int, str]]:
        """Mix the reply into the model, and keep the versions of requests that are still under way."""
        ((client, one),) = arrived.items()
        now = cohort.round_number
        versions = state.versions.with_({now: state.model})
        start = versions[_key(versions, now - one.age)]
        share = self.alpha * (1 + one.age) ** -self.staleness
        # a (w_(t - tau) + x - w_t): the difference of versions, and the update
        schema = state.model.schema
        direction = combine([(share, start), (-share, state.model), (share, one.update)], schema)
        model, num_kept = apply(state.model, direction)
        needed = {now, *(_key(versions, sent) for other, sent in cohort.busy.items() if other != client)}
        versions = versions.without([number for number in versions if number not in needed])
        return FedAsyncState(model, versions), {"kept variances": num_kept}, {}


def _key(versions: IntMap[Model], sent: int) -> int:
    """Return the round whose stored model was sent in round `sent`; rounds without a reply did not change it."""
    return min(number for number in versions if number >= sent)
