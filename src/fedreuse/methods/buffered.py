"""Buffered asynchronous averaging: clients work at their own pace, and the server steps after every K replies.

x_i   = update of client i, trained from w_(t - tau_i); tau_i is its age in steps of the server when it arrives
D_t   = aggregate(s(tau_i) x_i, i in the buffer)   s(tau) = (1 + tau)^-a; by default the mean over K replies
w_t+1 = w_t + step(D_t)

With `weighting: ratio` reply i has the weight n_i s(tau_i) / (sum of n_j s(tau_j) over the buffer): larger clients
count more, as in FedAvg, and an old update counts less than a fresh one, but the step is not shortened.

A round is one step of the server. As many clients work at the same time as a cohort has; when one replies, the next
idle client of the round's cohort is asked, in a random order. No client is asked twice in one round.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fedreuse.core.errors import require
from fedreuse.core.message import LOST, Event, Events, Message
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.model import Model, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.registry import part
from fedreuse.methods.aggregators.aggregator import Aggregator, Contribution, aggregators, judged
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.averaging import AveragingState, TrainingClient, update_of
from fedreuse.methods.server_steps.server_step import ServerStep, advance, server_steps
from fedreuse.methods.server_steps.sgd import SgdStep
from fedreuse.methods.stepping import SteppingServer

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.message import Conversation
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population

__all__ = ["Arrival", "AsynchronousServer", "Buffered", "BufferedServer", "check_buffer", "contributions_of"]

S = TypeVar("S", bound=Any)


@dataclass(frozen=True, eq=False)
class Arrival:
    """An update that arrived, and its age: steps of the server since the model that it was trained from."""

    update: Model
    age: int


class AsynchronousServer(SteppingServer[S]):
    """Base class of server halves that collect `buffer` replies, of whatever age, and step.

    Subclasses have the field `buffer` and define `init`, `step` and `merge`.
    """

    buffer: int

    @property
    def is_asynchronous(self) -> bool:
        """True: replies arrive one by one."""
        return True

    @abstractmethod
    def merge(
        self, state: S, arrived: Mapping[int, Arrival], cohort: Cohort
    ) -> tuple[S, Mapping[str, int], dict[int, str]]:
        """Return the state after a step with these updates, counts for the events, and verdicts on single clients.

        Args:
            state: The state before the step.
            arrived: The updates, in the order of arrival; at least one.
            cohort: The cohort; its `busy` clients had a request under way when the round began.
        """

    def round(self, state: S, cohort: Cohort) -> Conversation[S]:
        """Keep as many clients at work as the cohort has, collect replies, and step."""
        request = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        idle = [client for client in cohort.clients if client not in cohort.busy]
        waiting = [idle[at] for at in cohort.rng("order of requests").permutation(len(idle))]
        num_under_way = len(cohort.busy)
        arrived: dict[int, Arrival] = {}
        events = []
        while len(arrived) < self.buffer:
            asked = [waiting.pop() for _ in range(min(len(waiting), len(cohort.clients) - num_under_way))]
            num_under_way += len(asked)
            replies = yield dict.fromkeys(sorted(asked), request)
            if not replies:
                break  # nothing is under way, and no client is left to be asked
            ((client, reply),) = replies.items()
            num_under_way -= 1
            age = cohort.round_number - cohort.busy.get(client, cohort.round_number)
            events.append(Event(client, "lost" if reply.kind == LOST else "fresh", age=age))
            if reply.kind != LOST:
                arrived[client] = Arrival(from_groups(reply.groups, "update", state.model.schema), age)
        if not arrived:
            return state, Events(tuple(events))  # no reply arrived: the model is unchanged
        state, counts, verdicts = self.merge(state, arrived, cohort)
        return state, Events(judged(events, verdicts), counts)


@methods.register("buffered")
@dataclass(frozen=True)
class Buffered(MethodConfig):
    """FedAvg without a barrier: the server steps after every `buffer` replies, however old they are.

    `rounds.cohort` is the number of clients that work at the same time; a round is one step. Simulations need
    `devices`.

    Args:
        buffer: Replies of one step, at least 1 and at most `rounds.cohort`.
        staleness: Exponent a of the factor (1 + tau)^-a on an update that is tau steps old, at least 0; 0: no
            discount.
        prox: Strength of the proximal term, which pulls every local step towards the received model; at least 0.
        aggregate: Aggregator that turns the replies of a step into one direction.
        step: Server optimizer that moves the model along it.
        weighting: `equal`: every reply counts 1 / K, times its discount, as in FedBuff. `ratio`: replies count by their
            clients' examples and discounts, divided by their sum, so that old replies do not shorten the step.

    Example: `method: {name: buffered, buffer: 5, step: {name: adam, lr: 0.01}}`.
    """

    buffer: int = 5
    staleness: float = 0.5
    prox: float = 0.0
    aggregate: Aggregator = part(aggregators, "mean")
    step: ServerStep = part(server_steps, "sgd")
    weighting: Literal["equal", "ratio"] = "equal"

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_buffer(self.buffer, self.staleness)
        require(self.prox >= 0, "method.prox must not be negative", self.prox)
        require(not self.step.reads_slopes, "method.step must not read slopes, which replies do not carry", self.step)

    @property
    def needs(self) -> Needs:
        """Simulated time, and corrections of local steps for the proximal term."""
        return Needs(corrections=self.prox > 0, buffer=self.buffer)

    def halves(self, buffers: BufferPolicy) -> tuple[BufferedServer, TrainingClient]:
        """Return both halves; every update in the buffer is fresh, so both buffer policies are the same arithmetic."""
        del buffers
        server = BufferedServer(self.buffer, self.staleness, self.step, self.aggregate, self.weighting)
        return server, TrainingClient(self.prox)


@dataclass(frozen=True)
class BufferedServer(AsynchronousServer[AveragingState]):
    """The server half: the mean of the buffer, every update discounted by its age."""

    buffer: int
    staleness: float = 0.5
    step: ServerStep = field(default_factory=SgdStep)
    aggregate: Aggregator = field(default_factory=Mean)
    weighting: Literal["equal", "ratio"] = "equal"

    def init(self, model: Model, population: Population) -> AveragingState:
        """Return the state before the first round."""
        del population
        return AveragingState(model, self.step.init(model.weights))

    def merge(
        self, state: AveragingState, arrived: Mapping[int, Arrival], cohort: Cohort
    ) -> tuple[AveragingState, Mapping[str, int], dict[int, str]]:
        """Aggregate the buffer and step."""
        if self.weighting == "equal":
            contributions = contributions_of(arrived, self.staleness)
        else:
            contributions = _contributions_by_examples(arrived, self.staleness, cohort.population)
        made = self.aggregate.aggregate(contributions, cohort, state.model.schema)
        model, step, num_kept = advance(self.step, state.model, made.direction, state.step, made.statistics)
        return AveragingState(model, step), {"kept variances": num_kept}, dict(made.verdicts)


def contributions_of(arrived: Mapping[int, Arrival], staleness: float) -> dict[int, Contribution]:
    """Return every update with the same weight, and its discount as decay; buffers and counters are not discounted."""
    share = 1 / len(arrived)
    return {
        client: Contribution(one.update, share, (1 + one.age) ** -staleness, share, one.age)
        for client, one in sorted(arrived.items())
    }


def _contributions_by_examples(
    arrived: Mapping[int, Arrival], staleness: float, population: Population
) -> dict[int, Contribution]:
    """Return updates weighted by examples and discounts, in sum 1; buffers and counters by examples alone."""
    shares = population.ratio_weights(sorted(arrived))
    discounted = {client: share * (1 + arrived[client].age) ** -staleness for client, share in shares.items()}
    total = sum(discounted.values())
    return {
        client: Contribution(arrived[client].update, weight / total, 1.0, shares[client], arrived[client].age)
        for client, weight in discounted.items()
    }


def check_buffer(buffer: int, staleness: float = 0.0) -> None:
    """Check the ranges that asynchronous methods share."""
    require(buffer >= 1, "method.buffer must be at least 1", buffer)
    require(staleness >= 0, "method.staleness must not be negative", staleness)
