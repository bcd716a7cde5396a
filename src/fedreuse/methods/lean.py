"""Lean: FedAvg within a byte budget for the whole run and both directions, as a share of dense FedAvg's bytes.

S     = request + reply of dense FedAvg, in bytes; N = rounds * cohort requests
B     = budget * N * S                                 the bytes of the run
u     = budget * S / 4                                 a reply
m     = (B - N u - F) / M                              mean of the requests that carry a difference; M of them
d, e  = ordinary ones, and first ones to a client      L of these at most; L e + (M - L) d = M m, d >= 0.9 m, e <= 4 d
F, M  = cost of the first contacts, and number of other requests: round 1 carries no weights where both ends build the
        initial model; otherwise the first request to every client is dense

up    error_feedback(fit(u, C(u)))                     down    delta(fit(d, C(d)), start: initial, first: fit(e, C(e)))

`server_memory: auto` is `per_client` for at most 1,000 clients; else `none` if clients are asked at most twice on
average; else `shared`. With `none` the downlink is from_initial(fit(d, C(d))): differences to the initial
model, as a client gets that is asked for the first time.

With `server_memory: shared` the downlink is broadcast(fit(b, C(b))), and a request carries every broadcast that its
client missed. The broadcast of round t is sent at most once to each client that takes part from round t on:

M     = min(clients, cohort) + min(clients, 2 cohort) + ... + min(clients, (rounds - 1) cohort)
b     = (B - N u - F) / M                              a broadcast; F is the size of N requests without one

With `buffer: K` the server is asynchronous (buffered.py), and N = rounds * K + cohort - 1: every reply but the last of
a round is followed by a request. A difference is then one to the version that its client holds. Replies have the
weights n_i / (1 + tau_i), divided by their sum, and the step is f_t D_t with

f_t   = f = min(1, 2 K / cohort)                       in the first fifth of the rounds; then linearly down to f / 10

The cohort is at work at the same time, so that cohort / K steps pass while a client answers: with f = 1 and a cohort of
3 K the model oscillates around its limit, in dense FedBuff too, because replies answer a model from three steps before.

Where all clients evaluate (data at home), E bytes of evaluation are part of B, and dense FedAvg sends them, too:
B = budget * (N * S + E) - E; in every formula above, budget * N * S becomes that.

With `by_line` the bytes of each direction are divided by the clients' bandwidths (line_budgets.py) instead of equally.

C is the better of `allot`, packed, and `low_rank` for each message; the rounding of the first follows from the share
of the weights' dense bytes that a message may take. Running
statistics are sent as bf16. The evaluated model is a moving average of the models, which reduces noise and costs no
bytes. Where the budget allows a dense message, the link is dense and without memory: at budget 1 both directions are
dense and nothing is averaged, which is FedAvg.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.method import Resolved
from fedreuse.core.population import MOST_HELD
from fedreuse.methods.alias import Alias, alias
from fedreuse.methods.aliases import FedAvg, FedAvgM
from fedreuse.methods.buffered import Buffered
from fedreuse.methods.byte_plan import Allowances, BytePlan
from fedreuse.methods.server_steps.annealed import AnnealedStep
from fedreuse.methods.server_steps.damped import DampedStep
from fedreuse.methods.server_steps.moving_average import MovingAverageStep

if TYPE_CHECKING:
    from fedreuse.core.method import Scope
    from fedreuse.core.needs import Needs
    from fedreuse.methods.averaging import Averaging
    from fedreuse.methods.server_steps.server_step import ServerStep

__all__ = ["Lean"]

_STALENESS, _STEPS_AHEAD, _LAST, _HELD = 1.0, 2.0, 0.1, 0.2
"""Of an asynchronous server: exponent of the discount; longest sum of the steps that pass while a client answers; last
step as a share of the first; share of the rounds before steps shorten."""
_FEW = 2
"""Requests per client up to which differences to the initial model are as good as to what a client holds."""


@alias("lean")
@dataclass(frozen=True)
class Lean(Alias):
    """FedAvg within a byte budget: all links follow from it, once the federation is known.

    Args:
        budget: Bytes of all messages of the run, both directions together, as a share of dense FedAvg's, in
            (0, 1]; 1 is dense FedAvg. Evaluation by clients is part of both. A federation of few rounds or a tiny
            model has a smallest budget, which the error names.
        momentum: Server momentum, in [0, 1); costs no bytes. 0 is FedAvg's step.
        moving_average: Weight of the last average in the model that is evaluated and deployed, in [0, 1); costs no
            bytes. 0 evaluates the last model, as FedAvg does.
        server_memory: `per_client`: the server stores the model that each client holds, one vector per client.
            `shared`: it stores one vector and the last broadcasts, for any number of clients; a client that was absent
            receives all broadcasts that it missed, so broadcasts are smaller by about clients / cohort. `none`: it
            stores nothing, and every request is a difference to the initial model; for clients that are asked once or
            twice. `auto`: `per_client` up to 1,000 clients, else `none` for at most two requests per client, else
            `shared`.
        buffer: Replies per step of an asynchronous server, at least 1 and at most `rounds.cohort`. Replies count by
            examples and freshness, and the step shortens towards the end of the run. None: every round waits for its
            cohort.
        by_line: True: the messages of each client are as long as its line (`devices`) can carry in a time that is the
            same for all, so that slow lines do not hold up a round; the sum of bytes is the same. False: all clients
            send and receive equally much.

        low_rank: True: every message of weights is encoded as its largest coordinates and as a few outer products of
            each matrix, and the one with the smaller error is sent, in models of at most four million weights. False:
            largest coordinates only.

    Raises:
        ConfigError: Once the federation is known, if the budget is above 1 or below the smallest possible one.

    Example: `method: {name: lean, budget: 0.02}`.
    """

    budget: float = 0.02
    momentum: float = 0.0
    moving_average: float = 0.7
    server_memory: Literal["auto", "per_client", "shared", "none"] = "auto"
    buffer: int | None = None
    by_line: bool = False
    low_rank: bool = False

    def __post_init__(self) -> None:
        """Check the ranges; that of the budget depends on the federation."""
        for name in ("momentum", "moving_average"):
            require(0 <= getattr(self, name) < 1, f"method.{name} must be in [0, 1)", getattr(self, name))
        require(self.buffer is None or self.buffer >= 1, "method.buffer must be at least 1", self.buffer)
        require(
            self.buffer is None or self.server_memory in ("auto", "per_client"),
            "method.server_memory must be per_client with method.buffer: the budget of shared broadcasts counts on "
            "cohorts",
            self.server_memory,
        )
        require(
            not self.by_line or self.server_memory in ("auto", "per_client"),
            "method.server_memory must be per_client with method.by_line: shared broadcasts are the same for all lines",
            self.server_memory,
        )
        super().__post_init__()

    @property
    def _fedavg(self) -> FedAvg | FedAvgM | Buffered:
        fedavg = FedAvgM(1.0, self.momentum) if self.momentum else FedAvg()
        if self.buffer is None:
            return fedavg
        return Buffered(self.buffer, _STALENESS, step=fedavg.expand().step, weighting="ratio")

    def expand(self) -> Averaging | Buffered:
        """Return averaging, or buffered averaging, without links and schedule, which depend on the federation."""
        fedavg = self._fedavg
        if isinstance(fedavg, Buffered):  # damping measures how clients follow round by round
            return replace(fedavg, step=self._averaged(fedavg.step))
        averaging = fedavg.expand()
        return replace(averaging, step=self._averaged(DampedStep(averaging.step)))

    def _compressed(self, scope: Scope) -> Averaging | Buffered:
        """Return the method for lossy links: its step follows from the number of rounds if it is asynchronous."""
        fedavg = self._fedavg
        if not isinstance(fedavg, Buffered):
            return self.expand()
        first = min(1.0, _STEPS_AHEAD * fedavg.buffer / scope.cohort)
        annealed = AnnealedStep(scope.rounds, first, _LAST * first, _HELD, fedavg.step)
        return replace(fedavg, step=self._averaged(annealed))

    def _averaged(self, step: ServerStep) -> ServerStep:
        return MovingAverageStep(self.moving_average, step) if self.moving_average else step

    @property
    def needs(self) -> Needs:
        """Needs of averaging; bandwidths if messages are divided by line."""
        return replace(super().needs, lines=self.by_line)

    def smallest_budget(self, scope: Scope) -> float:
        """Return the smallest budget that a federation can reach, rounded up to four decimals."""
        return self._plan(scope).smallest

    def resolve(self, scope: Scope) -> Resolved:
        """Return FedAvg with the links that keep to the budget."""
        plan = self._plan(scope)
        allowed: Allowances | tuple[Allowances, ...] = plan.allowances(self.budget)
        if self.by_line and isinstance(allowed, Allowances):
            if not scope.lines:
                raise ConfigError("method.by_line needs the clients' bandwidths; add devices, or set by_line: false")
            allowed = plan.by_line(allowed)
        uplink, downlink = plan.uplink(allowed), plan.downlink(allowed)
        sizes = () if isinstance(allowed, Allowances) else tuple((one.request, one.reply) for one in allowed)
        # Averaging, damping and annealing are for lossy links; without them the method must be exactly FedAvg.
        because = self._because(scope) if downlink else ""
        method = self._compressed(scope) if uplink or downlink else self._fedavg
        return Resolved(method, uplink, downlink, sizes, because)

    def memory(self, scope: Scope) -> Literal["per_client", "shared", "none"]:
        """Return the memory at the server that a federation gets."""
        if self.server_memory == "none" and not scope.shares_initial:
            raise ConfigError(
                "method.server_memory: none sends differences to the initial model, which clients do not create here; "
                "set server_memory: shared"
            )
        if self.server_memory != "auto":
            return self.server_memory
        if scope.clients <= MOST_HELD or self.buffer is not None or self.by_line:
            return "per_client"
        return "none" if scope.shares_initial and scope.num_requests <= _FEW * scope.clients else "shared"

    def _because(self, scope: Scope) -> str:
        """Say which memory the server has, and why."""
        memory, size = self.memory(scope), scope.clients * scope.schema.weights.dense_bytes
        visits = scope.num_requests / scope.clients
        why = f"one vector per client would take {size / 1e6:,.1f} MB; a client is asked {visits:.3g} times on average"
        return f"server_memory: {memory}{' (auto)' if self.server_memory == 'auto' else ''}; {why}"

    def _plan(self, scope: Scope) -> BytePlan:
        values, memory = {"slope": 0.5} if self.buffer is None else {}, self.memory(scope)
        scope = replace(scope, buffer=self.buffer)
        return BytePlan(
            scope, is_shared=memory == "shared", is_stateless=memory == "none", values=values, low_rank=self.low_rank
        )
