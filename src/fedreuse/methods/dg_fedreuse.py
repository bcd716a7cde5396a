"""DG-FedReuse: the server reuses the cached update of selected clients whose head gradient has kept its direction.

    D_i   = 1 - clip(<p_i, h_i> / (|p_i| |h_i| + 1e-12), -1, 1)       score of client i: proxy against signature
    A_t   = no cache, or D_i >= tau_t, or age a_i >= max_age; filled up to the quota by decreasing D_i
    x_i   = fresh update of F_i + mu/2 |w - w_t|^2                    i in A_t; cached; h_i <- ema h_i + (1 - ema) p'_i
    x_i   = rho^a_i * cached update                                   otherwise
    w_t+1 = w_t + server_lr * sum_S omega_i x_i                       omega_i = n_i / sum_S n_j

Clients that are certain to train (no cache, or a cache that is too old) train in the first exchange; only the others
are scored. A gate with `scores_drift` gets another score, which the server computes without contacting clients:

    D_i   = |w_t - w_{t_i}| / |x_i|                                   t_i: round of the cache; infinity if x_i = 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedreuse.core.cohort import Attendance
from fedreuse.core.corrections import proximal
from fedreuse.core.errors import require
from fedreuse.core.int_map import IntMap
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, methods
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.registry import optional_part, part
from fedreuse.core.tensors import Tensors, add, dot, scale, sub
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import Aggregator, Contribution, aggregators, judged
from fedreuse.methods.aggregators.mean import Mean, chosen_aggregator
from fedreuse.methods.averaging import update_of, updates_of
from fedreuse.methods.gates.gate import Gate, gates
from fedreuse.methods.server_steps.server_step import ServerStep, advance, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step
from fedreuse.methods.stepping import SteppingServer

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation, Replies, Requests
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population

__all__ = ["DgClient", "DgFedReuse", "DgServer", "DgState", "Signature", "drift", "score"]


@methods.register("dg_fedreuse")
@dataclass(frozen=True)
class DgFedReuse(MethodConfig):
    """Reuse of a client's cached update, decayed by age, while its head gradient keeps its direction.

    Args:
        gate: Decides which clients train, and when a cached update is too old.
        rho: Factor on a cached update for each round of its age, in [0, 1].
        mu: Strength of the proximal term, which pulls every local step towards the received model; at least 0.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        renormalise: Divide by the sum of the decayed weights, so that reuse does not shrink the step.
        reused: `contribute` adds the cached update; `drop` leaves reused clients out of the mean.
        cover_lost: Use the cache of a client whose reply was lost, unless it is too old.
        signature_ema: Weight of the old signature at each training, in [0, 1).
        aggregate: Aggregator of the round's updates; null is the weighted mean.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: dg_fedreuse, rho: 0.8, gate: {name: proxy, quota: 0.5}}`.
    """

    gate: Gate = part(gates, "proxy")
    rho: float = 0.7279635
    mu: float = 3.4156e-4
    server_lr: float = 1.0
    renormalise: bool = False
    reused: Literal["contribute", "drop"] = "contribute"
    cover_lost: bool = False
    signature_ema: float = 0.9
    aggregate: Aggregator | None = optional_part(aggregators)
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 <= self.rho <= 1, "method.rho must be in [0, 1]", self.rho)
        require(self.mu >= 0, "method.mu must not be negative", self.mu)
        chosen_step(self.step, self.server_lr)
        require(
            not self.renormalise or self.aggregate in (None, Mean()),
            "method.aggregate must be the mean by ratio with renormalise, which rescales its weights",
            self.aggregate,
        )
        require(0 <= self.signature_ema < 1, "method.signature_ema must be in [0, 1)", self.signature_ema)

    @property
    def needs(self) -> Needs:
        """Head gradients, if the gate scores clients by them; corrections of local steps for the proximal term."""
        return Needs(gradients=self.gate.plan is not None, corrections=self.mu > 0)

    def attendance(self, cohorts: Sequence[Cohort], *, is_busy: bool) -> Attendance:
        """Return which clients train, with scores of infinity (busy) or zero; ages and quota follow the schedule."""
        rounds: dict[int, int] = {}
        trained = []
        for cohort in cohorts:
            ages = {client: cohort.round_number - rounds[client] for client in cohort.clients if client in rounds}
            fresh = self.gate.certain(ages, cohort)
            doubtful = {client: age for client, age in ages.items() if client not in fresh}
            scores = dict.fromkeys(doubtful, inf if is_busy else 0.0) if self.gate.is_scored else {}
            fresh |= self.gate.choose(scores, doubtful, fresh, cohort)
            rounds |= dict.fromkeys(fresh, cohort.round_number)
            trained.append(frozenset(fresh))
        # as in DgServer._remember: a cache that will be too old in the next round is dropped
        expiry = inf if self.gate.expiry is None else self.gate.expiry
        remembered = sum(len(trained) + 1 - last < expiry for last in rounds.values())
        return Attendance(tuple(trained), remembered)

    def halves(self, buffers: BufferPolicy) -> tuple[DgServer, DgClient]:
        """Return both halves; with buffer policy `as_weights` the server caches buffers, too."""
        return DgServer(self, caches_buffers=buffers == "as_weights"), DgClient(self)


@value
class DgState:
    """The model, the cached updates as the server decoded them, and their rounds.

    `cache` and `rounds` are by client, `senders` lists by round the clients that sent an update then. An update that is
    too old to be used again is removed from the cache; its round stays, because events still report the age. `starts`
    holds, by round, the weights that cached updates were trained from, if the gate scores drift.
    """

    model: Model
    cache: IntMap[Model]
    rounds: IntMap[int]
    senders: IntMap[tuple[int, ...]]
    step: Any = None
    starts: IntMap[Tensors] = field(default_factory=IntMap, metadata={"by": "round"})


@value
class Signature:
    """The client's reference proxy; None before its first training."""

    head: Tensors | None


@dataclass(frozen=True)
class DgServer(SteppingServer[DgState]):
    """The server half: score, choose, train, aggregate, cache."""

    config: DgFedReuse
    caches_buffers: bool

    def init(self, model: Model, population: Population) -> DgState:
        """Return the state before the first round."""
        del population
        return DgState(model, IntMap(), IntMap(), IntMap(), self.step.init(model.weights))

    @property
    def step(self) -> ServerStep:
        """The server step that moves the model."""
        return chosen_step(self.config.step, self.config.server_lr)

    def forget(self, state: DgState, client: int) -> DgState:
        """Drop the cached update of a client that lost its memory, and with it the signature for its scores."""
        return replace(state, cache=state.cache.without([client]), rounds=state.rounds.without([client]))

    def round(self, state: DgState, cohort: Cohort) -> Conversation[DgState]:
        """Train the certain clients and score the doubtful ones; train those that the gate chooses; aggregate."""
        gate = self.config.gate
        now = cohort.round_number
        ages = {client: now - state.rounds[client] for client in cohort.clients if client in state.rounds}
        fresh = gate.certain(ages, cohort)
        doubtful = {client: age for client, age in ages.items() if client not in fresh}
        train = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        # Without a plan no client computes a score: the decision is made here, and one exchange is enough.
        if gate.plan is None:
            scores = self._drifts(state, doubtful, now) if gate.scores_drift else {}
            fresh |= gate.choose(scores, doubtful, fresh, cohort)
            replies = yield dict.fromkeys(sorted(fresh), train)
        else:
            replies = yield _ask(fresh, doubtful, train)
            scores = {client: _as_score(replies[client].values["score"]) for client in doubtful if client in replies}
            chosen = gate.choose(scores, doubtful, fresh, cohort)
            replies = {client: reply for client, reply in replies.items() if client in fresh}
            # Chosen clients kept the model from the scoring request, so the second request carries no groups.
            if chosen:
                replies = replies | dict((yield dict.fromkeys(sorted(chosen), replace(train, groups={}))))
            fresh |= chosen
        events = self._events(cohort, ages, scores, fresh, replies)
        return self._merge(state, cohort, updates_of(replies, state.model), events)

    def _drifts(self, state: DgState, ages: Mapping[int, int], now: int) -> dict[int, float]:
        # Clients of the same age share a starting point: one difference per age, not per client.
        moved = {age: sub(state.model.weights, state.starts[now - age]) for age in set(ages.values())}
        return {client: drift(moved[age], state.cache[client].weights) for client, age in ages.items()}

    def _events(
        self,
        cohort: Cohort,
        ages: Mapping[int, int],
        scores: Mapping[int, float],
        fresh: Mapping[int, str],
        replies: Replies,
    ) -> list[Event]:
        events = []
        for client in cohort.clients:
            event = Event(client, "lost", fresh.get(client, ""), ages.get(client), scores.get(client))
            is_silent = self.config.gate.plan is not None and client not in fresh and client not in scores
            if client in replies:
                event = replace(event, outcome="fresh")
            elif client in fresh or is_silent:
                # A cache that is too old to be reused is too old to cover a loss.
                if self.config.cover_lost and client in ages and fresh.get(client) != "age":
                    event = replace(event, outcome="reused", reason="covered")
            else:
                event = replace(event, outcome="reused" if self.config.reused == "contribute" else "dropped")
            events.append(event)
        return events

    def _merge(
        self, state: DgState, cohort: Cohort, updates: Mapping[int, Model], events: list[Event]
    ) -> tuple[DgState, Events]:
        # Events decide what happens to each client, so that the stored record and the arithmetic cannot differ.
        ages = {event.client: event.age or 0 for event in events if event.outcome == "reused"}
        if not updates and not ages:
            return state, Events(tuple(events))  # no contribution: the model is unchanged
        contributions = self._contributions(state, cohort, updates, ages)
        made = chosen_aggregator(self.config.aggregate).aggregate(contributions, cohort, state.model.schema)
        moved, step, num_kept = advance(self.step, state.model, made.direction, state.step, made.statistics)
        if self.config.gate.scores_drift and updates:
            state = replace(state, starts=state.starts.with_({cohort.round_number: state.model.weights}))
        after = self._remember(replace(state, model=moved, step=step), updates, cohort.round_number)
        for client in sorted(contributions.keys() - made.statistics.weights.keys()):
            after = self.forget(after, client)  # an update that the aggregator left out must not be reused later
        return after, Events(judged(events, made.verdicts), {"kept variances": num_kept})

    def _contributions(
        self, state: DgState, cohort: Cohort, updates: Mapping[int, Model], ages: Mapping[int, int]
    ) -> dict[int, Contribution]:
        """Return fresh updates with full weight and cached ones decayed by age.

        Running statistics count for the clients that trained; if they are cached, for all.
        """
        population = cohort.population
        decays = {client: self.config.rho**age for client, age in ages.items()}
        shares = population.ratio_weights(sorted([*updates, *ages]))
        if self.config.renormalise:
            # With rho = 0 and no fresh update the total is zero; the weights then stay as they are.
            total = sum(share * decays.get(client, 1.0) for client, share in shares.items())
            shares = {client: share / total for client, share in shares.items()} if total else shares
        trained: Mapping[int, float] = population.ratio_weights(updates) if updates else {}
        if self.caches_buffers:
            trained = {client: share * decays.get(client, 1.0) for client, share in shares.items()}
        return {
            client: Contribution(
                updates[client] if client in updates else state.cache[client],
                share,
                decays.get(client, 1.0),
                trained.get(client),
                ages.get(client, 0),
            )
            for client, share in shares.items()
        }

    def _remember(self, state: DgState, updates: Mapping[int, Model], now: int) -> DgState:
        """Cache new updates and drop those that will be too old in the next round."""
        cache = state.cache.with_({client: self._to_cache(update) for client, update in updates.items()})
        rounds = state.rounds.with_(dict.fromkeys(updates, now))
        expiry = self.config.gate.expiry
        if expiry is None:
            return replace(state, cache=cache, rounds=rounds)
        # `senders` finds expired entries by round, so a round costs the cohort's size, not a scan of all clients.
        senders = state.senders.with_({now: tuple(updates)})
        expired = list(takewhile(lambda sent: now + 1 - sent >= expiry, senders))
        gone = [client for sent in expired for client in senders[sent] if rounds.get(client) == sent]  # not sent since
        unused = [sent for sent in state.starts if all(rounds.get(client) != sent for client in senders[sent])]
        starts = state.starts.without([*expired, *unused])
        return replace(state, cache=cache.without(gone), rounds=rounds, senders=senders.without(expired), starts=starts)

    def _to_cache(self, update: Model) -> Model:
        if self.caches_buffers:
            return update
        # Running statistics of an old round would pull the model's back; only weights are reused.
        return Model(update.weights, _nothing(update.buffers), _nothing(update.counters))


@dataclass(frozen=True)
class DgClient(ClientHalf[Signature]):
    """The client half: scores its head gradient against the signature, or trains and updates the signature."""

    config: DgFedReuse

    def init(self) -> Signature:
        """Return the state before the first training, without a signature."""
        return Signature(None)

    def answer(self, request: Message, state: Signature, trainer: LocalTrainer) -> tuple[Message, Signature]:
        """Return a score or an update, as requested."""
        received = from_groups(request.groups, "model", trainer.schema)
        if request.kind == "score":
            distance = 1.0 if state.head is None else score(self._proxy(received, trainer, "gate proxy"), state.head)
            return Message("score", values={"score": distance}), state
        trained = trainer.train(received, proximal(received.weights, self.config.mu))
        reply = Message("update", to_groups(difference(trained.model, received), "update"))
        if self.config.gate.plan is None:
            return reply, state  # the gate never requests a score, so no signature is needed
        # At the received model, like the later scores, not at the trained one. The batches have a stream of their own,
        # independent of those that a score uses.
        reference = self._proxy(received, trainer, "refresh proxy")
        if state.head is None:
            return reply, Signature(reference)
        ema = self.config.signature_ema
        return reply, Signature(add(scale(state.head, ema), scale(reference, 1 - ema)))

    def settle(self, state: Signature, delivered: Message) -> Signature:
        """Return the state unchanged: it does not depend on the delivered tensors."""
        del delivered
        return state

    def _proxy(self, received: Model, trainer: LocalTrainer, purpose: str) -> Tensors:
        plan = self.config.gate.plan
        assert plan is not None
        return trainer.gradient(
            received, trainer.schema.head(), plan, "fixed proxy" if plan.is_deterministic else purpose
        )


def score(proxy: Tensors, signature: Tensors) -> float:
    """Return the cosine distance, clipped to [0, 2]; a zero vector is at distance 1."""
    norms = np.sqrt(dot(proxy, proxy)) * np.sqrt(dot(signature, signature))
    return float(1 - np.clip(dot(proxy, signature) / (norms + 1e-12), -1, 1))


def drift(moved: Tensors, cached: Tensors) -> float:
    """Return the norm of a move over the norm of a cached update, at least 0; infinity for an update of zeros."""
    length = np.sqrt(dot(cached, cached))
    return float(np.sqrt(dot(moved, moved)) / length) if length else inf


def _ask(certain: Mapping[int, str], doubtful: Mapping[int, int], train: Message) -> Requests:
    scoring = Message("score", train.groups, keep=True, answers=(Answer("score", values={"score": float}),))
    return dict.fromkeys(sorted(certain), train) | dict.fromkeys(sorted(doubtful), scoring)


def _as_score(number: object) -> float:
    """Return the score, or 1 (an orthogonal gradient, so that the client trains) for one that is not in [0, 2]."""
    return float(number) if isinstance(number, float) and 0 <= number <= 2 else 1.0


def _nothing(tensors: Tensors) -> Tensors:
    """Return sparse tensors of the same schema without any coordinate."""
    return Tensors(tensors.schema, np.empty(0, tensors.schema.dtype), np.empty(0, np.int32))
