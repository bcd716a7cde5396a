"""Bounds on single clients where replies enter the server, before any method sees them.

norm      |d_i| at most LONGEST x the median of the last norms of the clients, for each group: weights, statistics,
          controls
spread    each coordinate within SPREAD x MAD of the median over the replies
sums      s_i = d_i + KEPT s_i, the recent replies of a client, with every coordinate cut to the range of s_j over the
          clients without the largest and the smallest CUT of them; d_i is scaled by the same factor in each coordinate
examples  n_i at most COUNTED x the median of n_j over all clients

A minority of the clients cannot move a median beyond the values of the others. Norms are compared over the clients that
answered last, not over one exchange: a method that asks few clients, such as DG-FedReuse, may ask mostly attackers. If
an exchange has fewer than FEWEST_ROWS replies, the spread is that of the last replies of these clients. `sums` is for
replies without all coordinates (Top-K, `lean`), which differ too much from each other to be compared one by one: a
coordinate that only a few clients move, such as those of a backdoor, is zero in the sums of the others. Both are for
up to RECENT clients: of more, earlier replies are few and old, and comparing with them cost points of accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from fedreuse.core.errors import ConfigError
from fedreuse.core.method import ServerHalf
from fedreuse.core.tensors import Tensors, dot, scale, to_dense
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import judged
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.robustness.privacy import private_mean_of

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.message import Conversation, Events, Message, Replies
    from fedreuse.core.model import Model
    from fedreuse.core.population import Population

__all__ = [
    "BoundedServer",
    "BoundedState",
    "bounded",
    "chosen_bounds",
    "for_strangers",
    "is_unprotected",
    "most_examples",
]

LONGEST, COUNTED = 1.0, 1.0
"""Largest norm, and largest number of examples, in medians."""
SPREAD = 2.0
"""Largest distance of a coordinate from the median, in median absolute deviations."""
CUT = 0.25
"""Share of the clients at each end of a coordinate that does not count for its range."""
KEPT = 0.9
"""Factor on a sum per exchange: old replies fade."""
FEWEST_NORMS, FEWEST_ROWS = 3, 5
"""Clients below which a median says nothing: of norms, and of coordinates."""
RECENT = 20
"""Clients whose last replies are compared."""
FLAGGED = 3.0
"""Multiple of a bound above which the event of a client says so; about half of honest clients are above the bound."""
VERDICT = "bounded"
UNPROTECTED = (
    "one client can destroy this model: a plain mean, without bounds and max_norm; set bounds: median, max_norm or a "
    "robust aggregator if you do not trust every member"
)


@value
class Seen:
    """Earlier replies by group and client, the oldest first: norms, and where they are needed last replies or sums."""

    norms: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    rows: Mapping[str, Mapping[int, Tensors]] = field(default_factory=dict)


@value
class BoundedState:
    """State of a bounded server half: that of the method, and what it has seen of the clients."""

    inner: Any
    seen: Seen


@dataclass(frozen=True)
class BoundedServer(ServerHalf[BoundedState]):
    """A server half that sees bounded replies; the event of a client far above a bound says `bounded`."""

    inner: ServerHalf[Any]

    @property
    def is_asynchronous(self) -> bool:
        """True if the inner half gets replies one by one."""
        return self.inner.is_asynchronous

    def init(self, model: Model, population: Population) -> BoundedState:
        """Return the state before the first round."""
        return BoundedState(self.inner.init(model, population), Seen())

    def model(self, state: BoundedState) -> Model:
        """Return the model that is evaluated and deployed."""
        return self.inner.model(state.inner)

    def broadcast(self, state: BoundedState) -> Model:
        """Return the model that clients receive."""
        return self.inner.broadcast(state.inner)

    def forget(self, state: BoundedState, client: int) -> BoundedState:
        """Let the inner half drop its memory of a client."""
        inner = self.inner.forget(state.inner, client)
        return state if inner is state.inner else replace(state, inner=inner)

    def round(self, state: BoundedState, cohort: Cohort) -> Conversation[BoundedState]:
        """Run the inner round with bounded replies."""
        conversation = self.inner.round(state.inner, cohort)
        seen, flagged = state.seen, set[int]()
        requests = next(conversation)
        while True:
            replies, seen, now = bounded((yield requests), seen, knows_all=len(cohort.population) <= RECENT)
            flagged |= now
            try:
                requests = conversation.send(replies)
            except StopIteration as finished:
                inner, events = finished.value
                return BoundedState(inner, seen), _marked(events, flagged)


def bounded(replies: Replies, seen: Seen, *, knows_all: bool = True) -> tuple[dict[int, Message], Seen, set[int]]:
    """Return bounded replies, what was seen of the clients, and the clients whose norms were far above a bound.

    Args:
        replies: The decoded replies of one exchange.
        seen: What earlier exchanges left.
        knows_all: True if no more than RECENT clients take part, so that earlier replies stand for all of them.
    """
    made, norms, rows, flagged = dict(replies), dict(seen.norms), dict(seen.rows), set[int]()
    for group in sorted({group for reply in replies.values() for group in reply.groups}):
        tensors = {
            client: replies[client].groups[group] for client in sorted(replies) if group in replies[client].groups
        }
        lengths = {client: dot(one, one) ** 0.5 for client, one in tensors.items()}
        norms[group] = _newest(norms.get(group, {}), lengths)
        if len(norms[group]) < FEWEST_NORMS:
            continue
        most = LONGEST * float(np.median(list(norms[group].values())))
        long = {client for client, length in lengths.items() if length > most}
        flagged |= {client for client, length in lengths.items() if length > FLAGGED * most}
        shorter = {
            client: scale(one, most / lengths[client]) if client in long else one for client, one in tensors.items()
        }
        fitted, rows[group] = _fitted(shorter, rows.get(group, {}), knows_all)
        for client, one in fitted.items():
            if one is not tensors[client]:
                made[client] = replace(made[client], groups={**made[client].groups, group: one})
    return made, Seen(norms, {group: each for group, each in rows.items() if each}), flagged


T = TypeVar("T")


def _newest(before: Mapping[int, T], now: Mapping[int, T]) -> dict[int, T]:
    """Return the entries of the clients that answered last, one per client; the newest are at the end."""
    kept = {client: entry for client, entry in before.items() if client not in now} | dict(now)
    return dict(list(kept.items())[-max(RECENT, len(now)) :])


Rows = Mapping[int, Tensors]


def _fitted(tensors: Rows, before: Rows, knows_all: bool) -> tuple[Rows, Rows]:
    """Return tensors whose coordinates are near those of other clients, and the rows to compare later ones with."""
    schemas = {one.schema for one in (*tensors.values(), *before.values())}
    if len(schemas) > 1:  # parts of tensors, which have no common coordinates
        return tensors, {}
    is_sparse = any(one.index is not None for one in tensors.values())
    if len(tensors) >= FEWEST_ROWS and not is_sparse:
        return _within_spread(tensors, tensors), {}
    if not knows_all:
        return tensors, {}
    if is_sparse:
        return _within_sums(tensors, before)
    rows = _newest(before, tensors)
    return (_within_spread(tensors, rows) if len(rows) >= FEWEST_ROWS else tensors), rows


def _within_spread(tensors: Rows, others: Rows) -> Rows:
    """Return tensors with every coordinate near the median of others."""
    (schema,) = {one.schema for one in tensors.values()}
    rows = _stacked(others)
    centre = np.median(rows, axis=0)
    reach = SPREAD * np.median(np.abs(rows - centre), axis=0)
    fitted = np.clip(_stacked(tensors), centre - reach, centre + reach).astype(schema.dtype)
    return {client: Tensors(schema, row) for client, row in zip(tensors, fitted, strict=True)}


def _within_sums(tensors: Rows, before: Rows) -> tuple[Rows, Rows]:
    """Return tensors scaled by coordinate so that the sums of their clients' replies are in the range of most."""
    (schema,) = {one.schema for one in tensors.values()}
    rows, sums = _stacked(tensors), {client: KEPT * _dense(one) for client, one in before.items()}
    now = {client: sums.get(client, 0.0) + row for client, row in zip(tensors, rows, strict=True)}
    sums = _newest(sums, now)
    stored = {client: Tensors(schema, each.astype(schema.dtype)) for client, each in sums.items()}
    if len(sums) < FEWEST_ROWS:
        return tensors, stored
    cut, last = int(CUT * len(sums)), len(sums) - 1
    ordered = np.partition(np.stack(list(sums.values())), (cut, last - cut), axis=0)
    own = np.stack(list(now.values()))
    fitted = np.clip(own, np.minimum(ordered[cut], 0), np.maximum(ordered[last - cut], 0))
    rows *= np.divide(fitted, own, out=np.ones_like(own), where=own != 0)
    return {
        client: Tensors(schema, row) for client, row in zip(tensors, rows.astype(schema.dtype), strict=True)
    }, stored


def _dense(tensors: Tensors) -> np.ndarray:
    return to_dense(tensors).values.astype(np.float64)


def _stacked(tensors: Rows) -> np.ndarray:
    return np.stack([_dense(one) for one in tensors.values()])


def _marked(events: Events, flagged: set[int]) -> Events:
    return replace(events, clients=judged(events.clients, dict.fromkeys(flagged, VERDICT)))


def most_examples(examples: np.ndarray) -> int | None:
    """Return the cap on a client's examples, COUNTED medians over the clients that have any; None without any."""
    present = examples[examples > 0]
    return max(1, int(COUNTED * np.median(present))) if len(present) else None


def chosen_bounds(config: RunConfig, is_at_home: bool) -> Literal["median", "none"] | None:
    """Return the bounds of a run: those of the configuration, or `median` where the data are at home.

    Raises:
        ConfigError: `median` beside a private mean. A median over the clients makes the updates of some depend on
            others, which the guarantee of the private mean excludes; it bounds every client by `clip` itself.
    """
    if private_mean_of(config.method) is None:
        return "median" if config.bounds is None and is_at_home else config.bounds
    if config.bounds == "median":
        raise ConfigError(
            "bounds: median with the aggregator private_mean is refused, because one client's norm would change the "
            "updates of others; private_mean bounds every client by clip: remove bounds"
        )
    return config.bounds


def for_strangers(config: RunConfig) -> RunConfig:
    """Return a configuration for members who are strangers: with bounds, unless it says otherwise or is private."""
    is_open = config.bounds is None and private_mean_of(config.method) is None
    return replace(config, bounds="median") if is_open else config


def is_unprotected(config: RunConfig) -> bool:
    """Return whether one client can move the model without limit: a plain mean, no bounds and no `max_norm`."""
    aggregate = config.method.aggregate
    has_rule = aggregate is not None and not isinstance(aggregate, Mean)
    return config.bounds != "median" and config.max_norm is None and not has_rule
