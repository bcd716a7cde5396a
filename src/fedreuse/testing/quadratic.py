"""A federation of quadratics in plain numpy, small enough to check a method bit by bit, through the real engine.

    F_i(w) = 1/2 (w - b_i)' A_i (w - b_i)                  A_i diagonal
    g      = A_i (w - b_i) + noise z + shift + pull (w - anchor) + weight_decay w
    v      = momentum v + g                                v = g at the first step
    w      = w - lr v

Buffers, if there are any, change at every step as BatchNorm's do: s = 0.9 s + 0.1 (client i's statistics), and a
counter increases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter
from typing import Any, Literal

import numpy as np

from fedreuse.accounting.ledger import Ledger
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.cohort import Cohort
from fedreuse.core.corrections import Correction
from fedreuse.core.local_trainer import BatchPlan, SplitName, Trained, Work
from fedreuse.core.method import Method
from fedreuse.core.metrics import Metrics
from fedreuse.core.model import Model
from fedreuse.core.population import Population
from fedreuse.core.randomness import stream
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.engine.clock import Clock
from fedreuse.engine.devices import Draw, Profile
from fedreuse.engine.evaluation import Question, evaluate_clients, start_evaluator
from fedreuse.engine.executors.executor import (
    ExecutorConfig,
    ExecutorWrapper,
    OpenExecutor,
    Reply,
    RunExecutor,
    Site,
    WorkerSetup,
)
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import FaultPlan, NoFaults
from fedreuse.engine.ports import WhichModel
from fedreuse.engine.rounds import mark_durable, run_round
from fedreuse.engine.state.checkpoint import Checkpointer, restore_clients, restore_server
from fedreuse.engine.state.client_store import ClientStore, MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.engine.state.tensor_store import TensorStore

__all__ = [
    "Crossing",
    "QuadraticFederation",
    "QuadraticSetup",
    "QuadraticTrainer",
    "QuadraticTraining",
    "Session",
    "Setting",
    "quadratic_schema",
]

_SHAPES = {"body.weight": (2, 3), "fc.weight": (4,), "fc.bias": (2,)}
_NUM_STATISTICS = 3
_KEPT = 0.9
_LOOK_AHEAD = 2


_WEIGHTS = Schema(tuple(TensorSpec(name, shape, "float64") for name, shape in _SHAPES.items()))


@cache
def quadratic_schema(has_buffers: bool = True, weights: Schema = _WEIGHTS) -> ModelSchema:
    """Return a schema of weights (by default three tensors), two running statistics and a counter."""
    if not has_buffers:
        return ModelSchema(weights)
    mean = TensorSpec("norm.running_mean", (_NUM_STATISTICS,), "float64", "buffer")
    variance = TensorSpec("norm.running_var", (_NUM_STATISTICS,), "float64", "buffer", is_positive=True)
    counter = TensorSpec("norm.num_batches_tracked", (), "int64", "counter")
    return ModelSchema(weights, Schema((mean, variance)), Schema((counter,)))


@dataclass(frozen=True)
class QuadraticTraining:
    """Hyperparameters of local training, the same for every client."""

    lr: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class QuadraticFederation:
    """All clients as plain arrays: row i is client i. `poisoned` lists (round, client) whose training diverges."""

    curvatures: np.ndarray
    optima: np.ndarray
    examples: np.ndarray
    steps: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    training: QuadraticTraining = QuadraticTraining()
    seed: int = 7
    has_buffers: bool = True
    poisoned: frozenset[tuple[int, int]] = frozenset()
    weights: Schema = _WEIGHTS
    initial_scale: float = 1.0

    @classmethod
    def draw(
        cls,
        num_clients: int = 8,
        training: QuadraticTraining = QuadraticTraining(),  # noqa: B008 - frozen
        *,
        seed: int = 7,
        has_buffers: bool = True,
        weights: Schema = _WEIGHTS,
    ) -> QuadraticFederation:
        """Draw clients with different curvatures, optima, numbers of examples and of steps."""
        rng = stream(seed, "quadratics")
        size = weights.size
        return cls(
            curvatures=rng.uniform(0.2, 2.0, (num_clients, size)),
            optima=rng.normal(0.0, 2.0, (num_clients, size)),
            examples=rng.integers(5, 60, num_clients),
            steps=rng.integers(2, 6, num_clients),
            means=rng.normal(0.0, 1.0, (num_clients, _NUM_STATISTICS)),
            variances=rng.uniform(0.5, 3.0, (num_clients, _NUM_STATISTICS)),
            training=training,
            seed=seed,
            has_buffers=has_buffers,
            weights=weights,
        )

    @property
    def schema(self) -> ModelSchema:
        """Schema of the model."""
        return quadratic_schema(self.has_buffers, self.weights)

    @property
    def population(self) -> Population:
        """All clients."""
        return Population(self.examples)

    @property
    def initial(self) -> Model:
        """Initial model: weights drawn once per seed; means zero, variances one, as in BatchNorm."""
        schema = self.schema
        drawn = stream(self.seed, "init").normal(0.0, self.initial_scale, schema.weights.size)
        weights = Tensors(schema.weights, drawn.astype(schema.weights.dtype))
        statistics = np.repeat([0.0, 1.0], _NUM_STATISTICS) if self.has_buffers else np.empty(0)
        return Model(weights, Tensors(schema.buffers, statistics.astype(schema.buffers.dtype)), zeros(schema.counters))

    def trainer(self, client: int, round_number: int) -> QuadraticTrainer:
        """Return the trainer of one client in one round."""
        return QuadraticTrainer(self, client, round_number)

    def validate(self, model: Model, start: int, stop: int) -> Metrics:
        """Evaluate a model on validation examples; example i is the evaluation by client i modulo their number."""
        metrics = [self.trainer(number % len(self.examples), 0).evaluate(model) for number in range(start, stop)]
        return sum(metrics, Metrics(0, 0.0, 0.0))

    def site(self, method: Method, **fields: Any) -> Site:
        """Return the site for an executor; `fields` are additional fields of `Site`."""
        return Site(method, self.schema, self.trainer, self.validate, seed=self.seed, **fields)

    def cohort(self, round_number: int, size: int) -> Cohort:
        """Return the cohort of a round and the next ones: uniform, without replacement, one random stream per round."""
        ahead = tuple(self._selected(round_number + number, size) for number in range(1, _LOOK_AHEAD + 1))
        return Cohort(round_number, self._selected(round_number, size), self.seed, ahead, self.population)

    def loss(self, model: Model) -> float:
        """Return the objective: the mean of F_i weighted by examples."""
        losses = [self.trainer(client, 0).evaluate(model) for client in range(len(self.examples))]
        return sum(part.loss for part in losses) / sum(part.examples for part in losses)

    def play(self, method: Method, num_rounds: int, setting: Setting | None = None) -> Session:
        """Return a session after some rounds."""
        session = Session(self, method, setting or Setting())
        session.advance(num_rounds)
        return session

    def _selected(self, round_number: int, size: int) -> tuple[int, ...]:
        drawn = stream(self.seed, "schedule", round_number).choice(len(self.examples), size, replace=False)
        return tuple(sorted(drawn.tolist()))


class QuadraticTrainer:
    """One client in one round."""

    def __init__(self, federation: QuadraticFederation, client: int, round_number: int) -> None:
        """Create the trainer; this is cheap, and done for every request."""
        self._federation = federation
        self.client = client
        self._round = round_number
        self.schema = federation.schema
        self.work = Work()

    @property
    def initial(self) -> Model:
        """Initial model of the run."""
        return self._federation.initial

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose for this client and round."""
        return stream(self._federation.seed, purpose, self._round, self.client)

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """Train for the client's number of steps, or for `steps`."""
        federation, client, began = self._federation, self.client, perf_counter()
        rule, rng = federation.training, self.rng(purpose)
        weights, velocity = start.weights.values, np.zeros(start.weights.schema.size)
        statistics = start.buffers.values
        num_steps = int(federation.steps[client]) if steps is None else steps
        before = correction if correction is not None and correction.place == "before_momentum" else None
        after = correction if correction is not None and correction.place == "after_momentum" else None
        for _ in range(num_steps):
            statistics = self._updated_statistics(statistics, weights)
            gradient = self._gradient(weights, rng)
            if before is not None:
                gradient = gradient + _correction(before, weights)
            gradient = gradient + rule.weight_decay * weights
            velocity = rule.momentum * velocity + gradient
            weights = weights - rule.lr * velocity
            if after is not None:
                weights = weights - rule.lr * _correction(after, weights)
        if (self._round, client) in federation.poisoned:
            weights = np.full_like(weights, np.nan)  # as after a training that diverged
        examples = int(federation.examples[client])
        self.work += Work(num_steps, num_steps * examples, 0, 0, num_steps * weights.size, perf_counter() - began)
        counters = Tensors(start.counters.schema, start.counters.values + num_steps)
        weights = weights.astype(start.weights.schema.dtype, copy=False)
        model = Model(Tensors(start.weights.schema, weights), Tensors(start.buffers.schema, statistics), counters)
        return Trained(model, num_steps, examples, rule.lr, rule.momentum)

    def gradient(self, at: Model, names: Collection[str], plan: BatchPlan, purpose: str) -> Tensors:
        """Return the sum, or mean, over batches of the gradient with respect to the named weights."""
        began, schema = perf_counter(), at.weights.schema
        rng = stream(self._federation.seed, purpose, 0 if plan.is_deterministic else self._round, self.client)
        batches = plan.num_batches or 1
        total = sum((self._gradient(at.weights.values, rng) for _ in range(batches)), np.zeros(schema.size))
        if plan.is_mean:
            total = total / batches
        examples = batches * (plan.batch_size or 1)
        self.work += Work(0, 0, batches, examples, batches * schema.size, perf_counter() - began)
        part = schema.subset(names)
        at_ = {spec.name: slice(start, start + spec.size) for spec, start in zip(schema, schema.offsets, strict=False)}
        return Tensors(part, np.concatenate([total[at_[spec.name]] for spec in part]))

    def loss(self, at: Model, purpose: str) -> float:
        """Return F_i + noise z' (w - b_i), whose gradient is that of training with the stream of `purpose`."""
        away = at.weights.values - self._federation.optima[self.client]
        loss = 0.5 * float(np.sum(self._federation.curvatures[self.client] * away * away))
        if noise := self._federation.training.noise:
            loss += noise * float(np.sum(self.rng(purpose).standard_normal(len(away)) * away))
        self.work += Work(0, 1, 0, 0, away.size, 0.0)
        return float("nan") if (self._round, self.client) in self._federation.poisoned else loss

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """Evaluate the client's own objective, once per example; the score falls from 1 to 0 as the loss grows.

        The test split has the same examples, each twice.
        """
        federation, client = self._federation, self.client
        away = model.weights.values - federation.optima[client]
        loss = 0.5 * float(np.sum(federation.curvatures[client] * away * away))
        examples = int(federation.examples[client]) * (2 if split == "test" else 1)
        return Metrics(examples, examples * loss, examples / (1 + loss))

    def _gradient(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        federation, client = self._federation, self.client
        exact: np.ndarray = federation.curvatures[client] * (weights - federation.optima[client])
        noise = federation.training.noise
        return exact + noise * rng.standard_normal(len(weights)) if noise else exact

    def _updated_statistics(self, statistics: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if not self._federation.has_buffers:
            return statistics
        mean = self._federation.means[self.client] + np.resize(weights, _NUM_STATISTICS)
        seen = np.concatenate([mean, self._federation.variances[self.client]])
        updated: np.ndarray = _KEPT * statistics + (1 - _KEPT) * seen
        return updated


def _correction(correction: Correction, weights: np.ndarray) -> np.ndarray:
    total = np.zeros_like(weights)
    if correction.anchor is not None and correction.pull:
        total = total + correction.pull * (weights - correction.anchor.values)
    return total if correction.shift is None else total + correction.shift.values


_LINES = Profile(up=Draw(low=1e4, high=4e5), down=1e6, latency=0.01)


@dataclass(frozen=True, eq=False)
class Setting:
    """Settings of a session: clients per round, executor, faults, stores of both ends, rounds between checkpoints.

    `shares_initial`: clients build the initial model themselves. `clock`: simulated time; None: asynchronous methods
    get devices of which the slowest has a fortieth of the fastest one's bandwidth.
    """

    cohort: int = 3
    executor: ExecutorConfig = field(default_factory=Serial)
    faults: FaultPlan = field(default_factory=NoFaults)
    make_store: Callable[[], ClientStore] = MemoryStore
    checkpoint_every: int = 1
    tensors: TensorStore | None = None
    wrap_setup: Callable[[WorkerSetup], WorkerSetup] = lambda setup: setup
    shares_initial: bool = True
    clock: Clock | None = None


@dataclass(frozen=True, eq=False)
class QuadraticSetup:
    """The setup of worker processes for a federation."""

    method: Method
    federation: QuadraticFederation

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> Site:  # noqa: ARG002 - pickled with the federation
        """Return the site of a worker."""
        return self.federation.site(self.method)


@dataclass(frozen=True, eq=False)
class Crossing:
    """One envelope between server and client."""

    client: int
    direction: Literal["down", "up"]
    envelope: Envelope


class Session:
    """A run in progress on a federation: the real round loop, ports, links, ledger and checkpoints."""

    def __init__(self, federation: QuadraticFederation, method: Method, setting: Setting) -> None:
        """Start before the first round."""
        self.federation, self.setting = federation, setting
        self.method = replace(method, initial=federation.initial if setting.shares_initial else None)
        self.schema = federation.schema
        self.ledger = Ledger()
        self.crossings: list[Crossing] = []
        self.warnings: list[str] = []
        self.record = ServerRecord(method.server.init(federation.initial, federation.population))
        self.store: ClientStore = setting.make_store()
        self.blobs: dict[tuple[str, int], bytes] = {}
        self.round_number = 0
        self.models = [self.model]
        self._checkpointer = Checkpointer(self.schema, None, setting.tensors)
        self._executor: RunExecutor | None = None
        self._clock = setting.clock
        if setting.clock is None and method.server.is_asynchronous:
            self._clock = Clock(_LINES.fleet(len(federation.examples), federation.seed))

    @property
    def model(self) -> Model:
        """Current model."""
        return self.method.server.model(self.record.state)

    def advance(self, num_rounds: int) -> Session:
        """Run some more rounds."""
        self._executor = self._executor or self._start()
        for _ in range(num_rounds):
            self.round_number += 1
            cohort = self.federation.cohort(self.round_number, self.setting.cohort)
            self.record = run_round(
                self.method, self.record, cohort, self._executor, self.ledger, self.schema, self._clock
            )
            self.models.append(self.model)
            if self.round_number % self.setting.checkpoint_every == 0:
                self.checkpoint()
        return self

    def evaluate(
        self, model: WhichModel = "own", split: SplitName = "validation", clients: Collection[int] | None = None
    ) -> dict[int, Metrics]:
        """Return the metrics of all clients, or of some, on the current model."""
        asked = range(len(self.federation.examples)) if clients is None else clients
        question = Question(Cohort(self.round_number, tuple(asked), self.federation.seed), model, split)
        evaluator = _Watched(start_evaluator(self._site()), self.crossings)
        return evaluate_clients(self.method, self.record, question, evaluator, self.ledger, self.schema)

    def close(self) -> None:
        """Stop worker processes, if there are any."""
        if self._executor is not None:
            self._executor.close()
        self._executor = None

    def checkpoint(self) -> None:
        """Store the changes since the last checkpoint, as a run directory does."""
        for key, data in self._checkpointer.changes(self.record, self.store).items():
            if data is None:
                self.blobs.pop(key, None)
            else:
                self.blobs[key] = data
        self.record = mark_durable(self._checkpointer.settled(self.record))

    def resumed(self, store: ClientStore | None = None) -> Session:
        """Return a session that resumes from the last checkpoint; `store` replaces the stored client records."""
        other = Session(self.federation, self.method, self.setting)
        every = self.setting.checkpoint_every
        other.round_number = self.round_number // every * every
        if not other.round_number:
            return other
        other.record = restore_server(self.blobs, self.schema, "the stored session", self.setting.tensors)
        other.store = MemoryStore(restore_clients(self.blobs, self.schema, "the session")) if store is None else store
        other.blobs = dict(self.blobs)
        other.models = self.models[: other.round_number + 1]
        other.models[-1] = other.model
        other.ledger.rows = [row for row in self.ledger.rows if row.round_number <= other.round_number]
        other.ledger.events = [event for event in self.ledger.events if event.round_number <= other.round_number]
        other._checkpointer = Checkpointer(self.schema, other.record, self.setting.tensors)
        return other

    def _start(self) -> RunExecutor:
        started = self.setting.executor.start(self._site())
        if isinstance(started, OpenExecutor):
            self._clock = None  # it decides the order of arrivals itself
            return started
        return _Watched(started, self.crossings)

    def _site(self) -> Site:
        federation, setting = self.federation, self.setting
        setup = setting.wrap_setup(QuadraticSetup(self.method, federation))
        return federation.site(
            self.method, store=self.store, faults=setting.faults, setup=setup, warn=self.warnings.append
        )


class _Watched(ExecutorWrapper):
    """An executor that records all envelopes."""

    def __init__(self, inner: RunExecutor, crossings: list[Crossing]) -> None:
        super().__init__(inner)
        self._crossings = crossings

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        self._crossings += [Crossing(client, "down", envelope) for client, envelope in requests.items()]
        for reply in self._inner.exchange(requests):
            self._crossings.append(Crossing(reply.client, "up", reply.envelope))
            yield reply


def with_poison(federation: QuadraticFederation, *where: tuple[int, int]) -> QuadraticFederation:
    """Return the same federation with diverging training at these (round, client)."""
    return replace(federation, poisoned=frozenset(where))
