"""The configuration of a run: read from YAML, written back with all defaults, hashed to the run id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.compression.links.choice import check_one_codec
from fedreuse.config.changes import apply_changes
from fedreuse.config.keep import Keep
from fedreuse.config.recipe import Recipe, parse_links
from fedreuse.config.yaml_file import read_overrides, read_yaml
from fedreuse.core.allowed import allow as allow_imports
from fedreuse.core.errors import ConfigError, require
from fedreuse.core.listener import ListenerConfig, listeners, parse_listeners
from fedreuse.core.method import BufferPolicy, Evaluations, Line, Link, Method, MethodConfig, Scope, methods
from fedreuse.core.registry import named_plain, optional_part, parse, part, to_plain
from fedreuse.engine.devices import Devices, devices
from fedreuse.engine.executors.executor import ExecutorConfig, executors
from fedreuse.engine.faults import FaultPlan, faults
from fedreuse.engine.schedule import Availability, Schedule, availabilities
from fedreuse.learning.at_home import blank_answer, is_at_home
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.task import TASK_KEYS, Task, parse_task
from fedreuse.learning.trainer import Local
from fedreuse.methods.wrapper import Wrapper
from fedreuse.robustness.attacks.attack import Attack, attacks
from fedreuse.robustness.attacks.hostile import under_attack
from fedreuse.robustness.bounds import BoundedServer, chosen_bounds
from fedreuse.robustness.privacy import check_private_run
from fedreuse.store.identity import run_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.core.schema import ModelSchema

__all__ = [
    "Rounds",
    "RunConfig",
    "load",
    "read_overrides",
    "read_yaml",
    "require_clock",
    "with_changes",
    "with_overrides",
]


@dataclass(frozen=True)
class Rounds:
    """Number of rounds and of clients in each, evaluation, early stopping and availability.

    Args:
        count: Number of rounds, at least 1.
        cohort: Number of clients selected in each round, at least 1 and at most `task.clients`; if it is not given,
            10, or all clients of a task that has fewer. A file may call it `clients_per_round`.
        evaluate_every: Rounds between evaluations, at least 1; the first and the last round are always evaluated.
        patience: Evaluations without a better validation score after which the run stops, at least 1. None: no early
            stopping.
        availability: The clients that can be selected in a round.
        deadline: Simulated seconds after which the replies of a round are late, above 0; late replies are counted but
            not used. None: the server waits for all. Needs `devices`.
        wait_for: Replies after which the server stops waiting, at least 1 and at most `cohort`; select more clients
            than that to leave out the slowest. None: all. Needs `devices`.

    Raises:
        ConfigError: If a number is below 1.

    Example:
        rounds: {count: 60, cohort: 10, evaluate_every: 5}
    """

    count: int = 90
    cohort: int = field(default=10, metadata={"alias": "clients_per_round"})
    evaluate_every: int = 5
    patience: int | None = None
    availability: Availability = part(availabilities, "always")
    deadline: float | None = None
    wait_for: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.count >= 1, "count must be at least 1", self.count)
        require(self.cohort >= 1, "cohort must be at least 1", self.cohort)
        require(self.evaluate_every >= 1, "evaluate_every must be at least 1", self.evaluate_every)
        require(self.patience is None or self.patience >= 1, "patience must be at least 1", self.patience)
        require(self.deadline is None or self.deadline > 0, "deadline must be above 0", self.deadline)
        is_possible = self.wait_for is None or 1 <= self.wait_for <= self.cohort
        require(is_possible, f"wait_for must be from 1 to cohort, which is {self.cohort}", self.wait_for)

    def is_evaluated(self, round_number: int) -> bool:
        """Return whether a round is evaluated: the first, every `evaluate_every`-th, and the last."""
        return round_number in (1, self.count) or round_number % self.evaluate_every == 0

    @property
    def num_evaluations(self) -> int:
        """Number of rounds that are evaluated."""
        return sum(self.is_evaluated(number) for number in range(1, self.count + 1))


@dataclass(frozen=True)
class RunConfig:
    """The complete configuration of a run. `load` reads one; `dataclasses.replace` changes one.

    Args:
        task: Dataset, clients, partition, held-out examples, loss and metric.
        network: The torch module.
        local: Local training: epochs, batch size, optimizer, learning rate over rounds, device.
        method: The federated method.
        uplink: Links by group, client to server. Groups without one use the method's own link, or are sent dense.
        downlink: Links by group, server to client, with the same defaults.
        buffers: The way running statistics and counters are sent up if `uplink` has no link for them: `dense`, or
            `as_weights`, through the link of `update`.
        rounds: Number of rounds and of clients in each, evaluation and availability.
        faults: Simulated loss and delay of requests.
        devices: Bandwidths, latency and speed of the clients, from which simulated time follows. None: no clock.
        attack: Behaviour and number of Byzantine clients. None: all clients are honest.
        executor: Execution of the clients, such as in one process or in workers; does not change the result.
        client_store: Storage of clients' records between rounds, `memory` or `disk`; does not change the result.
        server_store: Storage of the server's caches and link states, `memory` or `disk`; does not change the result.
        checkpoint_every: Rounds between checkpoints, at least 1; does not change the result.
        accept_approximation: Allow a method to run with fewer clients per round than its theory assumes.
        max_norm: Largest Euclidean norm of a group in a reply, positive; replies above it are refused. None: no bound.
        max_examples: Cap on a client's number of examples in its aggregation weight, at least 1. None: no cap.
        bounds: `median` bounds examples, norms and coordinates of each client by medians over the clients, before the
            method sees a reply; `none` is the plain method. None: `median` where data stay at the nodes (task
            `at_home`), else the plain method; `fedreuse deploy` and Flower apps set `median`.
        seed: Seed of all random streams, not negative.
        listeners: Callbacks of the run, by name (`csv`, `tensorboard`, `mlflow`, `progress`); do not change the result.
        test: `open` tests the model once after the last round; `sealed` leaves the test split closed until `unseal`.
            Model, ledger and metrics are the same.
        development_seeds: Seeds with which these settings were chosen; a run with one of them must be sealed.
        keep: Models, states and checkpoints that are kept in addition to the last state.

    Raises:
        ConfigError: If a value is out of range, or parts are incompatible, such as a cohort larger than the population.

    Example:
        >>> from dataclasses import replace
        >>> from fedreuse import load
        >>> config = load({"task": {"name": "digits", "clients": 8}, "rounds": {"cohort": 4}})
        >>> replace(config, seed=202).run_id == config.run_id
        False
    """

    task: Task = field(metadata={"parse": parse_task})
    network: Network = part(networks, "cnn")
    local: Local = field(default_factory=Local)
    method: MethodConfig = part(methods, "fedavg")
    uplink: Mapping[str, Link] = field(default_factory=dict, metadata={"parse": parse_links})
    downlink: Mapping[str, Link] = field(default_factory=dict, metadata={"parse": parse_links})
    buffers: BufferPolicy = "dense"
    rounds: Rounds = field(default_factory=Rounds)
    faults: FaultPlan = part(faults, "none")
    devices: Devices | None = optional_part(devices)
    attack: Attack | None = optional_part(attacks)
    executor: ExecutorConfig = part(executors, "pool")
    client_store: Literal["memory", "disk"] = "memory"
    server_store: Literal["memory", "disk"] = "memory"
    checkpoint_every: int = 1
    accept_approximation: bool = False
    max_norm: float | None = None
    max_examples: int | None = None
    bounds: Literal["median", "none"] | None = None
    seed: int = 101
    listeners: tuple[ListenerConfig, ...] = field(default=(), metadata={"parse": parse_listeners})
    test: Literal["open", "sealed"] = "open"
    keep: Keep = field(default_factory=Keep)
    development_seeds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the ranges and the compatibility of the parts."""
        require(self.checkpoint_every >= 1, "checkpoint_every must be at least 1", self.checkpoint_every)
        require(self.seed >= 0, "seed must not be negative", self.seed)
        require(self.max_norm is None or self.max_norm > 0, "max_norm must be positive", self.max_norm)
        require(
            self.max_examples is None or self.max_examples >= 1, "max_examples must be at least 1", self.max_examples
        )
        recipe = self.recipe
        for name in ("method", "uplink", "downlink"):
            object.__setattr__(self, name, getattr(recipe, name))
        if self.rounds.cohort > self.task.clients:
            raise ConfigError(
                f"rounds.cohort is {self.rounds.cohort}, but task.clients is {self.task.clients}; "
                f"set rounds.cohort to at most {self.task.clients}"
                + ("" if self.task.partition.uses_clients else ", or raise task.clients")
            )
        if self.method.needs.lines and self.devices is None:
            raise ConfigError(
                f"method {methods.name_of(self.method)} divides bytes by line, but there are no devices; add for "
                "example devices: {name: profile, up: {low: 56kbit, high: 10mbit}, down: 20mbit}, or set by_line: false"
            )
        if self.method.needs.asynchronous:
            self._check_asynchronous()
        for name in ("deadline", "wait_for"):
            if getattr(self.rounds, name) is not None and self.devices is None:
                raise ConfigError(
                    f"rounds.{name} needs simulated time, but there are no devices; add for example "
                    "devices: {name: profile, up: {low: 0.5mbit, high: 10mbit}, down: 20mbit}"
                )
        if self.rounds.patience is not None and self.task.validation == 0:
            raise ConfigError(
                "rounds.patience needs validation scores, but task.validation is 0; "
                "hold out a share (for example task.validation: 0.1), or drop rounds.patience"
            )
        self._check_keep()
        check_private_run(self)
        object.__setattr__(self, "bounds", chosen_bounds(self, is_at_home(self.task.dataset)))
        if self.seed in self.development_seeds and self.test == "open":
            raise ConfigError(
                f"seed: {self.seed} is one of development_seeds, with which these settings were chosen, so its test "
                "score is not independent; take another seed, such as 401, or set test: sealed"
            )
        name, needs = methods.name_of(self.method), self.method.needs
        needs.check(name, self.rounds.cohort, self.task.clients, self.accept_approximation)

    def _check_asynchronous(self) -> None:
        """Check that nothing of an asynchronous method waits for a cohort."""
        name = methods.name_of(self.method)
        if self.rounds.wait_for is not None:
            raise ConfigError(
                f"rounds.wait_for is {self.rounds.wait_for}, but method {name} is asynchronous and waits for its own "
                "number of replies; set method.buffer, and drop rounds.wait_for"
            )
        if isinstance(self.method, Wrapper):
            raise ConfigError(
                f"method.inner is asynchronous, but {name} wraps the exchanges of whole cohorts; drop one"
            )

    def _check_keep(self) -> None:
        """Check that `keep` names rounds, models and states that this run has."""
        late = [number for number in (*self.keep.models, *self.keep.states) if number > self.rounds.count]
        require(not late, f"keep: rounds must be at most rounds.count, which is {self.rounds.count}", late)
        if self.keep.model == "best" and (self.task.validation == 0 or self.method.is_personal):
            why = "task.validation is 0" if self.task.validation == 0 else "each client has its own model"
            raise ConfigError(f"keep.model: best selects one model by validation, but {why}; write keep.model: last")
        if self.keep.has_copies and "disk" in (self.client_store, self.server_store):
            raise ConfigError(
                "keep.states and keep.checkpoints need stores in memory, because files of a store are not copied; set "
                "client_store and server_store to memory, or drop states and checkpoints from keep"
            )

    @property
    def recipe(self) -> Recipe:
        """The method and its links."""
        return Recipe(self.method, self.uplink, self.downlink, self.buffers)

    def build_method(self, recipe: Recipe | None = None) -> Method:
        """Return the method with its links, norm bound and attack; `recipe` is the resolved one, if there is one."""
        method = replace((recipe or self.recipe).build(), max_norm=self.max_norm)
        if self.bounds == "median":  # inside an attack, whose colluders replace decoded replies
            method = replace(method, server=BoundedServer(method.server))
        return method if self.attack is None else under_attack(method, self.attack, self.bad_clients)

    @property
    def bad_clients(self) -> frozenset[int]:
        """Ids of the attacking clients; empty without an attack."""
        return frozenset() if self.attack is None else self.attack.clients(self.task.clients, self.seed)

    def scope(self, schema: ModelSchema) -> Scope:
        """Return the facts about the federation that a method may adapt to, given the model's tensors."""
        rounds = self.rounds
        evaluations = self._evaluations() if is_at_home(self.task.dataset) else None
        return Scope(
            schema, self.task.clients, rounds.cohort, rounds.count, lines=self._lines(), evaluations=evaluations
        )

    def _evaluations(self) -> Evaluations:
        """Return the evaluations by clients that have the data: on validation examples, and the test at the end."""
        return Evaluations(
            self.rounds.num_evaluations * (self.task.validation > 0) + (self.test == "open"),
            blank_answer(self.task).to_values(),
        )

    def _lines(self) -> tuple[Line, ...]:
        """Return the lines of the clients if the method adapts to them."""
        needs, clients, rounds = self.method.needs, self.task.clients, self.rounds
        if self.devices is None or not needs.lines:
            return ()
        fleet = self.devices.fleet(clients, self.seed)
        schedule = Schedule.draw(clients, rounds.count, rounds.cohort, rounds.availability, self.seed)
        visits, first = Counter(client for cohort in schedule for client in cohort.clients), schedule.cohorts[0]
        return tuple(
            Line(
                fleet.device(client).up.usual,
                fleet.device(client).down.usual,
                None if needs.asynchronous else visits[client],
                client in first,
            )
            for client in range(clients)
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the configuration as plain data, with every default written out."""
        return {
            "task": self.task.to_plain(),
            "network": named_plain(networks, self.network),
            "local": to_plain(self.local),
            **self.recipe.to_plain(),
            "rounds": to_plain(self.rounds),
            "faults": named_plain(faults, self.faults),
            "devices": named_plain(devices, self.devices),
            "attack": named_plain(attacks, self.attack),
            "executor": named_plain(executors, self.executor),
            "client_store": self.client_store,
            "server_store": self.server_store,
            "checkpoint_every": self.checkpoint_every,
            "accept_approximation": self.accept_approximation,
            "max_norm": self.max_norm,
            "max_examples": self.max_examples,
            "bounds": self.bounds,
            "seed": self.seed,
            "listeners": [named_plain(listeners, listener) for listener in self.listeners],
            "test": self.test,
            "keep": to_plain(self.keep),
            "development_seeds": list(self.development_seeds),
        }

    @property
    def run_id(self) -> str:
        """Hash of all settings that affect the result; runs of equal id give bit-identical results."""
        return run_id_of(self.to_plain())

    @property
    def label(self) -> str:
        """Readable name of the run directory."""
        plain = self.to_plain()
        parts = [plain["method"]["name"], plain["task"]["name"], f"s{self.seed}", self.run_id]
        return "-".join(str(word).replace(":", ".") for word in parts)


def require_clock(config: RunConfig) -> None:
    """Check that an asynchronous method that is simulated has simulated time.

    Raises:
        ConfigError: If there are no devices.
    """
    if config.method.needs.asynchronous and config.devices is None:
        raise ConfigError(
            f"method {methods.name_of(config.method)} is asynchronous and needs simulated time, but there are no "
            "devices; add for example devices: {name: profile, up: {low: 0.5mbit, high: 10mbit}, down: 20mbit}, or run "
            "it on nodes (`fedreuse deploy`)"
        )


def load(
    source: str | Path | Mapping[str, Any], overrides: Sequence[str] = (), *, allow: Sequence[str | Path] = ()
) -> RunConfig:
    """Read a configuration.

    Args:
        source: The path of a YAML file or the name of a shipped one, or its content as a mapping. Only `task` is
            required; unknown keys are errors.
        overrides: Changes in the form `key=value`, such as `rounds.count=10` or `method=fedprox`, applied in order.
        allow: Modules, packages or folders of modules whose classes configurations may name as `package.module:Name`,
            from now on in this process. Modules in the folder of a file that is read are always allowed.

    Returns:
        The configuration, with every default filled in.

    Raises:
        ConfigError: If the file cannot be read, a key is unknown, or a value has a wrong type or is out of range; the
            message names the key, the value and the nearest known name.

    Example:
        >>> from fedreuse import load
        >>> config = load({"task": {"name": "digits", "clients": 8}}, ["rounds.cohort=4", "method=fedprox"])
        >>> config.rounds.cohort, config.method.mu
        (4, 0.0005)
    """
    allow_imports(allow)
    plain = _plain(source)
    if "axes" in plain:
        name = source if isinstance(source, str | Path) else "STUDY.yaml"
        raise ConfigError(f"{name} is a study (it has axes); start it with `fedreuse compare {name}`")
    plain = _with_cohort(with_overrides(plain, overrides))
    check_one_codec(plain)
    config: RunConfig = parse(RunConfig, plain, "")
    return config


def _with_cohort(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the mapping with all clients as the cohort, if none is given and the task has fewer than the default."""
    rounds = plain.get("rounds") or {}
    if not isinstance(rounds, Mapping) or "cohort" in rounds or not isinstance(plain.get("task"), Mapping):
        return plain
    clients = parse_task(plain["task"], "task").clients
    return plain if clients >= Rounds.cohort else {**plain, "rounds": {**rounds, "cohort": clients}}


def _plain(source: object) -> dict[str, Any]:
    if isinstance(source, str | Path):
        return read_yaml(Path(source))
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, RunConfig):
        raise ConfigError("this is a configuration already; run() takes it, dataclasses.replace changes it")
    raise ConfigError(f"the path of a YAML file or a mapping of its keys expected, got {source!r}")


def with_overrides(plain: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Return the mapping with overrides `a.b.c=value` applied all at once; values are read as YAML."""
    return with_changes(plain, read_overrides(overrides))


def with_changes(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with a tree of changes applied; a change of dataset keeps the keys of the task itself.

    Aliases are replaced in both by the names of the fields, so that a change may use the other name of a key.
    """
    return apply_changes(_without_aliases(plain), _without_aliases(changes), {"task": TASK_KEYS})


def _without_aliases(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    rounds = plain.get("rounds")
    if not isinstance(rounds, Mapping):
        return plain
    aliases = {field.metadata["alias"]: field.name for field in fields(Rounds) if "alias" in field.metadata}
    for alias, name in aliases.items():
        if alias in rounds and name in rounds:
            raise ConfigError(f"rounds.{alias} is an alias of rounds.{name}, but both are given; drop one")
    return {**plain, "rounds": {aliases.get(key, key): value for key, value in rounds.items()}}
