"""Flower strategy for existing apps, with every method and link, started with `start(grid, initial_arrays, rounds)`.

Flower's loop, evaluation and result are unchanged; only the training of a round is done by fedreuse.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Literal

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg, Result

from fedreuse.accounting.ledger import Ledger
from fedreuse.compression.links.choice import check_one_codec
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import ConfigError, RunError, require
from fedreuse.core.method import Scope
from fedreuse.core.registry import parse
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.app_clients import AppClients, wait_for_nodes
from fedreuse.deploy.existing_app.array_layout import ArrayLayout, arrays_of
from fedreuse.deploy.flower.private import check_replies
from fedreuse.engine.rounds import mark_durable, run_round
from fedreuse.engine.schedule import AlwaysAvailable, Schedule
from fedreuse.engine.state.records import ServerRecord
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.robustness.bounds import UNPROTECTED, BoundedServer
from fedreuse.robustness.privacy import private_mean_of, spent

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from fedreuse.core.method import BufferPolicy, Method

__all__ = ["FedReuseStrategy"]

_log = logging.getLogger("flwr")


class FedReuseStrategy(FedAvg):
    """Flower strategy that trains with a fedreuse method and its links; it replaces Flower's FedAvg.

    Args:
        method: Name or settings of a method, as in a configuration, with its aggregation rule in `aggregate`.
        uplink: Links of uploads by group, such as `{"update": {"name": "top_k", "ratio": 0.1}}`.
        downlink: Links of downloads by group.
        buffers: `dense` sends normalisation statistics as they are, `as_weights` through the links of the weights.
        seed: Seed of cohorts and of random parts.
        max_norm: Updates with a larger L2 norm are refused, above 0; None for no limit.
        max_examples: Upper limit of a client's weight, at least 1; None for that of `bounds`.
        bounds: `median` bounds examples, norms and coordinates of each client by medians over the clients; `none` is
            the plain method. A private mean has its own bound.
        examples: Examples by partition id that the server knows, used instead of the nodes' reports.
        flower: Arguments of Flower's FedAvg, such as `fraction_train`.

    `ledger` holds the bytes of every message; `resolved` is the recipe once the federation is known.

    Raises:
        ConfigError: An unknown name, a value out of range, or a method that an existing app cannot run.

    Example:
        >>> from fedreuse.deploy import FedReuseStrategy
        >>> strategy = FedReuseStrategy({"name": "lean", "budget": 0.05})
        >>> strategy = FedReuseStrategy("fed_ef", fraction_train=0.5)
        >>> strategy = FedReuseStrategy({"name": "averaging", "aggregate": "multi_krum"}, max_norm=5)
        >>> strategy.recipe.name
        'averaging'
    """

    def __init__(  # noqa: PLR0913 - keywords, each with a default
        self,
        method: str | Mapping[str, Any] = "fedavg",
        uplink: Mapping[str, Any] | None = None,
        downlink: Mapping[str, Any] | None = None,
        *,
        buffers: BufferPolicy = "dense",
        seed: int = 101,
        max_norm: float | None = None,
        max_examples: int | None = None,
        bounds: Literal["median", "none"] = "median",
        examples: Mapping[int, int] | None = None,
        **flower: Any,
    ) -> None:
        """Check the settings; nothing is sent yet."""
        super().__init__(**flower)
        require(max_norm is None or max_norm > 0, "max_norm must be positive", max_norm)
        require(max_examples is None or max_examples >= 1, "max_examples must be at least 1", max_examples)
        require(bounds in ("median", "none"), "bounds must be median or none", bounds)
        for client, count in (examples or {}).items():
            require(0 <= count < 1 << 53, f"examples[{client}] must be a number of examples", count)
        self.max_norm, self.max_examples, self.examples = max_norm, max_examples, examples
        plain = {"method": method, "uplink": uplink or {}, "downlink": downlink or {}, "buffers": buffers}
        check_one_codec(plain)
        self.recipe: Recipe = parse(Recipe, plain, "")
        self.resolved = self.recipe
        self.seed = seed
        self.ledger = Ledger(warn=_log.warning)
        self._training: _Training | None = None
        self.bounds = "none" if private_mean_of(self.recipe.method) is not None else bounds
        _check(self.recipe)
        if self.bounds == "none" and max_norm is None and isinstance(self.recipe.method.aggregate, Mean | None):
            _log.warning(UNPROTECTED)

    def summary(self) -> None:
        """Log method and links."""
        plain = self.resolved.to_plain()
        _log.info("\t├──> Method: %s", plain["method"])
        _log.info("\t├──> Links: up %s | down %s | buffers %s", plain["uplink"], plain["downlink"], plain["buffers"])
        super().summary()

    def start(  # noqa: PLR0913, PLR0917 - Flower's own signature
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run Flower's loop, with fedreuse rounds as its training."""
        layout = ArrayLayout.of(initial_arrays)
        num_nodes = max(self.min_available_nodes, self.min_train_nodes)
        nodes = wait_for_nodes(grid, num_nodes)
        # clients do not know the initial model, so the first contact is dense
        scope = Scope(layout.schema, len(nodes), self._cohort(len(nodes)), num_rounds, shares_initial=False)
        self.resolved = self.recipe.resolved(scope)
        agreement = Agreement(self.resolved, layout, self.seed, self.arrayrecord_key, self.weighted_by_key)
        most: int | Literal["median"] | None = self.max_examples
        if most is None and self.bounds == "median":
            most = "median"
        clients = AppClients(agreement, grid, timeout, nodes, most, self.examples)
        clients.require(num_nodes)
        cohort = self._cohort(len(clients.population))
        self.ledger = Ledger(warn=_log.warning)
        method = replace(self.resolved.build(), max_norm=self.max_norm)
        if self.bounds == "median":
            method = replace(method, server=BoundedServer(method.server))
        self._training = _Training(agreement, clients, initial_arrays, (num_rounds, cohort), self.ledger, method)
        return super().start(grid, initial_arrays, num_rounds, timeout, train_config, evaluate_config, evaluate_fn)

    def _cohort(self, num_clients: int) -> int:
        return min(num_clients, max(int(num_clients * self.fraction_train), self.min_train_nodes))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Run the whole round here, since it may take several exchanges; return no messages for Flower to send."""
        del arrays, grid
        if self._training is None:
            raise RunError("start a FedReuseStrategy with start(grid, initial_arrays, num_rounds)")
        if self.fraction_train:
            config["server-round"] = server_round
            self._training.round(server_round, {self.configrecord_key: config})
        return []

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return the model and metrics of the round."""
        del server_round, replies
        assert self._training is not None
        contents = self._training.clients.contents
        if not contents:
            return self._training.arrays, None
        check_replies(contents, self.weighted_by_key)
        return self._training.arrays, self.train_metrics_aggr_fn(contents, self.weighted_by_key)


class _Training:
    """Rounds of one `start`, run with the engine of simulations."""

    def __init__(
        self,
        agreement: Agreement,
        clients: AppClients,
        initial: ArrayRecord,
        size: tuple[int, int],
        ledger: Ledger,
        method: Method,
    ) -> None:
        num_rounds, cohort = size
        recipe, seed, num_clients = agreement.recipe, agreement.seed, len(clients.population)
        recipe.method.needs.check(recipe.name, cohort, num_clients, accept_approximation=False)
        self.clients, self._layout, self._ledger = clients, agreement.layout, ledger
        self._method, self._look_ahead = method, recipe.method.needs.look_ahead
        is_private = private_mean_of(recipe.method) is not None
        self._secret = token_bytes(32) if is_private else None  # for noise and cohorts; it is never stored
        self._recipe = recipe
        self._schedule = Schedule.draw(num_clients, num_rounds, cohort, AlwaysAvailable(), seed, self._secret)
        model = agreement.layout.model(arrays_of(initial))
        self._record = ServerRecord(self._method.server.init(model, clients.population))

    @property
    def arrays(self) -> ArrayRecord:
        """Current model."""
        return self._layout.record(self._method.server.model(self._record.state))

    def round(self, number: int, records: Mapping[str, ConfigRecord]) -> None:
        """Run one round."""
        self.clients.begin(number, records)
        cohort = self._schedule.cohort(number, self._look_ahead)
        cohort = replace(cohort, population=self.clients.population, secret=self._secret)
        seen = len(self._ledger.rows), len(self._ledger.events)
        record = run_round(self._method, self._record, cohort, self.clients, self._ledger, self._layout.schema)
        self._record = mark_durable(
            record
        )  # no recovery: a server app that dies ends the run, so that no client is asked to go back
        self._log_round(number, seen)
        for line in self._ledger.take_alarms():
            _log.warning("fedreuse %s", line)

    def _log_round(self, number: int, seen: tuple[int, int]) -> None:
        rows, events = self._ledger.rows[seen[0] :], self._ledger.events[seen[1] :]
        total = {way: sum(row.total_bytes for row in rows if row.direction == way) for way in ("down", "up")}
        outcomes = {name: sum(event.outcome == name for event in events) for name in ("fresh", "reused", "lost")}
        counts = ", ".join(f"{count} {name}" for name, count in outcomes.items())
        _log.info("fedreuse round %d: %s; %d bytes down, %d bytes up", number, counts, total["down"], total["up"])
        if (privacy := spent(self._recipe.method, self._ledger.events)) is not None:
            _log.info("fedreuse round %d: epsilon %.3f so far (delta %g)", number, privacy["epsilon"], privacy["delta"])


def _check(recipe: Recipe) -> None:
    """Raise ConfigError for methods that an existing app cannot run."""
    name, way_out = recipe.name, "deploy it as an app of fedreuse: fedreuse deploy CONFIG"
    if recipe.method.needs.steps:
        raise ConfigError(f"method {name} sets the number of local steps, which the app decides here; {way_out}")
    if recipe.method.needs.asynchronous:
        raise ConfigError(f"method {name} is asynchronous, but an app waits for its cohorts; {way_out}")
    if recipe.method.is_personal:
        raise ConfigError(f"method {name} keeps models at clients that Flower's evaluation never sees; {way_out}")
