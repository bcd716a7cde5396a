"""Strategies around a strategy: its messages cross compressed, and everything else stays as it is."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp.strategy import Result, Strategy

from fedreuse.compression.links.link import links
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import ConfigError, RunError, require
from fedreuse.core.registry import parse
from fedreuse.deploy.existing_app.array_layout import ArrayLayout
from fedreuse.deploy.existing_app.budget_plan import BudgetPlan, Exchanges
from fedreuse.deploy.existing_app.compressed_grid import CompressedGrid
from fedreuse.deploy.existing_app.joined_evaluation import JoinedEvaluation, why_separate
from fedreuse.deploy.existing_app.traffic import Traffic
from fedreuse.deploy.flower.private import is_on_wire, seconds_since_submission
from fedreuse.methods.aliases import FedAvg

if TYPE_CHECKING:
    from flwr.serverapp import Grid

__all__ = ["Compressed", "Lean"]

_log = logging.getLogger("flwr")
_POLL_SECONDS = 1.0
_REFUSED = {
    "FedXgbBagging": "it sends trees, which have no differences",
    "FedXgbCyclic": "it sends trees, which have no differences",
    "DifferentialPrivacyClientSideFixedClipping": "clients clip before error feedback adds to the update, so that the "
    "clipping norm no longer bounds what they send; use DifferentialPrivacyServerSideFixedClipping",
    "DifferentialPrivacyClientSideAdaptiveClipping": "clients clip before error feedback adds to the update, so that "
    "the clipping norm no longer bounds what they send; use DifferentialPrivacyServerSideAdaptiveClipping",
}
_BY_COORDINATE = ("FedMedian", "FedTrimmedAvg", "Bulyan")
_BY_DISTANCE = ("Krum", "MultiKrum", "Bulyan")
_EF21 = 'Compressed(strategy, uplink={"name": "ef21", "codec": {"name": "top_k", "ratio": 0.05}})'


class Compressed(Strategy):
    """A Flower strategy whose messages cross compressed in both directions.

    The strategy keeps its sampling, aggregation, metrics and configuration; it is handed the arrays that it sent plus
    the decoded update of each node. Client apps need `ClientApp(mods=[compression_mod])`.

    Args:
        strategy: The strategy.
        uplink: Link or codec of updates, as in a configuration; by default Top-K with error feedback, 5 % of the
            coordinates.
        downlink: Link or codec of the model; by default the differences to the model that the node holds, packed.
        folder: Folder for `traffic.json` and for the state of the run: a server app that died and is started again with
            the same folder continues after the last complete round; None writes nothing.
        seed: Seed of random codecs.
        joined_evaluation: Whether nodes evaluate a model in the exchange in which they train it, in the next round. The
            metrics are the same, and there are half as many messages; `aggregate_evaluate` of a round is called after
            `configure_train` of the next. None: unless the strategy has a loop or an `aggregate_evaluate` of its own.

    `traffic` holds the bytes that crossed, by kind.

    Raises:
        ConfigError: A value out of range, or a strategy that cannot work with decoded updates.

    Example:
        >>> from flwr.serverapp.strategy import FedAdam
        >>> from fedreuse.deploy import Compressed
        >>> strategy = Compressed(FedAdam(), uplink={"name": "qsgd"})
        >>> strategy.strategy.eta
        0.1
    """

    def __init__(
        self,
        strategy: Strategy,
        uplink: str | Mapping[str, Any] | None = None,
        downlink: str | Mapping[str, Any] | None = None,
        *,
        folder: str | Path | None = None,
        seed: int = 101,
        joined_evaluation: bool | None = None,
    ) -> None:
        """Check the settings; nothing is sent yet."""
        self.strategy, self.seed, self.traffic = _checked(strategy), seed, Traffic()
        if joined_evaluation and type(strategy).start is not Strategy.start:
            raise ConfigError(f"joined_evaluation: {type(strategy).__name__} has a loop of its own; leave it out")
        self._joined = joined_evaluation
        self._folder = None if folder is None else Path(folder)
        top_k = {"name": "error_feedback", "codec": {"name": "packed", "codec": {"name": "top_k", "ratio": 0.05}}}
        delta = {"name": "delta", "codec": {"name": "packed", "codec": "nonzero"}, "start": "initial"}
        self._links = {"uplink": {"update": uplink or top_k}, "downlink": {"model": downlink or delta}}
        self._check_coordinates(parse(Recipe, {"method": "fedavg", **self._links}, ""))

    def recipe(self, layout: ArrayLayout, exchanges: Exchanges) -> Recipe:
        """Return the links for arrays of a layout."""
        del layout, exchanges
        made: Recipe = parse(Recipe, {"method": "fedavg", **self._links}, "")
        return made

    def start(self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, *args: Any, **kwargs: Any) -> Result:
        """Start the strategy; arguments and result are its own.

        Raises:
            ConfigError: A budget that cannot be kept in this run, or arrays that cannot be sent.
            RunError: No node takes part.
        """
        self.traffic = Traffic(is_on_wire=is_on_wire(grid), waited=seconds_since_submission(grid))
        exchanges = self._exchanges(grid, num_rounds)
        layout = ArrayLayout.of(initial_arrays)
        layout.schema  # noqa: B018 - raises for arrays that cannot be sent
        recipe = cache(lambda layout: self.recipe(layout, exchanges))  # its warnings are logged once
        recipe(layout)
        compressed = CompressedGrid(grid, recipe, self.seed, self.traffic, self._folder)
        arrays, done = compressed.resume(initial_arrays)
        try:
            rounds = max(1, num_rounds - done)
            result = self._loop(compressed, rounds, *args, **kwargs).start(compressed, arrays, rounds, *args, **kwargs)
            compressed.finish()
            return result
        finally:
            for line in self.traffic.lines():
                _log.info("fedreuse: %s", line)
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
                (self._folder / "traffic.json").write_text(json.dumps(self.traffic.to_plain(), indent=1) + "\n")

    def summary(self) -> None:
        """Log the summary of the strategy."""
        self.strategy.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Raise RunError: only `start` compresses."""
        del server_round, arrays, config, grid
        self._refuse()

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Raise RunError: only `start` compresses."""
        del server_round, replies
        self._refuse()

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Raise RunError: only `start` compresses."""
        del server_round, arrays, config, grid
        self._refuse()

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Raise RunError: only `start` compresses."""
        del server_round, replies
        self._refuse()

    @property
    def _is_joined(self) -> bool:
        return why_separate(self.strategy) is None if self._joined is None else self._joined

    def _loop(self, grid: CompressedGrid, num_rounds: int, timeout: float = 3600, *_: Any, **__: Any) -> Strategy:
        """Return the strategy whose loop runs: with evaluation in the messages of training where that is possible."""
        if self._is_joined:
            return JoinedEvaluation(self.strategy, grid, num_rounds, timeout)
        if self._joined is None:
            _log.info("fedreuse: evaluation takes messages of its own, because %s", why_separate(self.strategy))
        return self.strategy

    def _refuse(self) -> NoReturn:
        name, inner = type(self).__name__, type(self.strategy).__name__
        raise RunError(
            f"{name} is inside another strategy, which would send its messages uncompressed; put {name} outermost: "
            f"{name}(other_strategy({inner}(...)))"
        )

    def _exchanges(self, grid: Grid, num_rounds: int) -> Exchanges:
        """Return the messages of the run, after waiting for the nodes that the strategy waits for."""
        inner = _innermost(self.strategy)
        wanted = int(getattr(inner, "min_available_nodes", 1))
        while (nodes := len(list(grid.get_node_ids()))) < max(1, wanted):
            _log.info("fedreuse: %d of %d nodes are connected", nodes, wanted)
            time.sleep(_POLL_SECONDS)

        def cohort(of: str) -> int:
            fraction, least = getattr(inner, f"fraction_{of}", 1.0), getattr(inner, f"min_{of}_nodes", 0)
            return 0 if fraction == 0 else min(nodes, max(int(nodes * fraction), least))

        train, evaluate = max(1, cohort("train")), cohort("evaluate")
        return Exchanges(nodes, max(1, num_rounds), train, evaluate, self._is_joined, is_on_wire(grid))

    def _check_coordinates(self, recipe: Recipe) -> None:
        name, link = type(_innermost(self.strategy)).__name__, recipe.uplink.get("update")
        if name in _BY_COORDINATE and link is not None and link.drops_coordinates:
            raise ConfigError(
                f"{name} compares single coordinates of updates, but {links.name_of(link)} of a codec that drops "
                f"coordinates makes them arrive as zeros, which would outvote the others; use {_EF21}, with "
                "which the server holds dense estimates"
            )
        if name in _BY_DISTANCE:
            _log.info("fedreuse: %s compares decoded updates, whose distances include the error of the codec", name)


class Lean(Compressed):
    """A Flower strategy within a budget of bytes.

    Both directions are kept to a share of the bytes that cross without it, training and evaluation together, on real
    nodes with Flower's requests: updates as their largest coordinates with error feedback, models as differences to the
    model that the node holds, first contacts rounded. A node evaluates the model as it holds it.

    Args:
        strategy: The strategy.
        budget: Share of the bytes in each direction, in (0, 1].
        folder: Folder for `traffic.json` and for the state of the run: a server app that died and is started again with
            the same folder continues after the last complete round; None writes nothing.
        seed: Seed of random codecs.
        joined_evaluation: Whether nodes evaluate a model in the exchange in which they train it, in the next round. The
            metrics are the same, and there are half as many messages; `aggregate_evaluate` of a round is called after
            `configure_train` of the next. None: unless the strategy has a loop or an `aggregate_evaluate` of its own.
        low_rank: Whether each message is also encoded as a few outer products of every matrix, and sent in the form
            with the smaller error, in models of at most four million weights. For updates without large coordinates,
            as Adam makes them in transformers and LoRA adapters.

    Raises:
        ConfigError: A budget out of range; at the start, one below the smallest possible for this run.

    Example:
        >>> from flwr.serverapp.strategy import FedAvg
        >>> from fedreuse.deploy import Lean
        >>> strategy = Lean(FedAvg(fraction_train=0.5), budget=0.02)
        >>> strategy.budget
        0.02
    """

    def __init__(
        self,
        strategy: Strategy,
        budget: float = 0.05,
        *,
        folder: str | Path | None = None,
        seed: int = 101,
        joined_evaluation: bool | None = None,
        low_rank: bool = False,
    ) -> None:
        """Check the settings; nothing is sent yet."""
        require(0 < budget <= 1, "budget must be above 0 and at most 1", budget)
        super().__init__(strategy, folder=folder, seed=seed, joined_evaluation=joined_evaluation)
        self.budget, self.low_rank = budget, low_rank

    def recipe(self, layout: ArrayLayout, exchanges: Exchanges) -> Recipe:
        """Return the links that keep to the budget."""
        plan = BudgetPlan(self.budget, layout.schema, exchanges, self.low_rank)
        for hint in (plan.hint(), plan.overhead_hint()):
            if hint is not None:
                _log.warning("fedreuse: %s", hint)
        return Recipe(FedAvg(), plan.uplink(), plan.downlink())


def _innermost(strategy: Any) -> Any:
    while isinstance(getattr(strategy, "strategy", None), Strategy):
        strategy = strategy.strategy
    return strategy


def _checked(strategy: object) -> Strategy:
    """Raise ConfigError for anything but a strategy that works with decoded updates."""
    if not isinstance(strategy, Strategy):
        raise ConfigError(
            f"strategy: a strategy of flwr.serverapp.strategy expected, got {type(strategy).__name__}; strategies of "
            "flwr.server.strategy belong to Flower's older interface"
        )
    outer: Any = strategy
    while isinstance(outer, Strategy):
        if isinstance(outer, Compressed):
            raise ConfigError(f"strategy: {type(outer).__name__} inside another compression; leave one of them out")
        for kind in type(outer).__mro__:
            if kind.__name__ in _REFUSED:
                raise ConfigError(f"strategy: {kind.__name__} is refused: {_REFUSED[kind.__name__]}")
        outer = getattr(outer, "strategy", None)
    return strategy
