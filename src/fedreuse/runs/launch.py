"""One run from its configuration to its directory, stage by stage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fedreuse.config.run_config import RunConfig, load, require_clock
from fedreuse.core.bounded import read_json
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.events import Failed, Started
from fedreuse.core.listener import Listener, Listeners
from fedreuse.core.listener import listeners as named_listeners
from fedreuse.engine.faults import NoFaults
from fedreuse.engine.schedule import load_or_freeze
from fedreuse.learning.at_home import at_server, is_at_home
from fedreuse.robustness.bounds import UNPROTECTED, is_unprotected
from fedreuse.robustness.privacy import secret_of
from fedreuse.runs.claim import check_ours, check_same, hold
from fedreuse.runs.facts import write_facts
from fedreuse.runs.federation import Federation, assemble
from fedreuse.runs.live import LiveRun
from fedreuse.runs.scores import evaluation_note
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.executors.executor import ExecutorConfig
    from fedreuse.engine.schedule import Schedule
    from fedreuse.learning.task import PreparedTask

__all__ = ["EXAMPLES_FILE", "Census", "prepare", "run", "storing"]

EXAMPLES_FILE = "examples.json"
"""File in the run directory with each client's number of training examples, where data stay at the clients."""


def run(
    config: RunConfig | str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
    progress: bool = False,
    executor: ExecutorConfig | None = None,
) -> RunDirectory:
    """Run a configuration, or resume an unfinished run with bit-identical results.

    Args:
        config: A configuration, the path of a YAML file, or a mapping with the content of one.
        out: The run directory. None: `runs/` and the run's own name.
        resume: Continue the unfinished run in the directory, and return a complete one as it is. Without it a
            directory that holds a run is refused.
        listeners: Objects that are notified of the run's events, before those that the configuration names; each may
            stop the run.
        progress: Show a progress bar on a terminal or in a notebook, lines in a file.
        executor: Executor in place of the configured one, for clients on other machines.

    Returns:
        The run directory. Its `state` is `complete`, or `stopped` if a listener asked for that.

    Raises:
        UserError: An error in the configuration, the data or the directory; nothing is left behind.
        RunError: The run cannot continue; the rounds before are stored, and `resume=True` continues from them.

    Example:
        >>> from fedreuse import load, run
        >>> small = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp"}
        >>> config = load(small, ["rounds={count: 2, cohort: 2}", "local.epochs=1"])
        >>> directory = run(config, "first")
        >>> directory.is_complete, sorted(directory.summary["events"])[:1]
        (True, ['fresh'])
    """
    config = config if isinstance(config, RunConfig) else load(config)
    directory = RunDirectory(Path(out) if out is not None else Path("runs") / config.label)
    if resume and directory.is_complete:
        directory.verify()
        check_same(config, directory)
        return directory
    check_ours(directory.path)
    audience = _audience(config, directory, listeners, progress)
    with hold(directory, config, resume), storing(directory), prepare(config, directory, executor) as live:
        with _announced(live, audience):
            live.complete_round(audience)
            while not live.is_over and audience.stop is None:
                live.play_round(audience)
            end = live.finish(live.test()) if audience.stop is None else live.stop(audience.stop.reason)
        audience.tell(end)
    return directory


def _audience(config: RunConfig, directory: RunDirectory, listeners: Sequence[Listener], progress: bool) -> Listeners:
    """Start the configured listeners, and put the caller's first."""
    for listener in listeners:
        if isinstance(listener, str | type):
            raise ConfigError(
                f"listeners: a Listener object expected, got {listener!r}; built-in listeners are named in the "
                "configuration (listeners: [csv]), and a class must be instantiated first"
            )
    named = [*config.listeners, *([named_listeners.parse("progress", "listeners")] if progress else [])]
    return Listeners([*listeners, *(settings.start() for settings in named)], directory.log)


@contextmanager
def _announced(live: LiveRun, audience: Listeners) -> Iterator[None]:
    """Notify the listeners that the run starts, and if it fails."""
    config, directory, first = live.federation.config, live.directory, live.round_number + 1
    directory.log(f"rounds {first} to {config.rounds.count}")
    directory.note_stop(None)
    try:
        audience.tell(Started(config, directory, first))
        yield
    except BaseException as error:
        audience.tell(Failed(error))
        raise


@contextmanager
def storing(directory: RunDirectory) -> Iterator[None]:
    """Re-raise errors of the operating system as a RunError that says how to continue."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{directory.path}: {error}; rounds that are stored are safe. Correct that (often the disk is full), "
            "then continue with resume=True"
        ) from error


@contextmanager
def prepare(config: RunConfig, directory: RunDirectory, elsewhere: ExecutorConfig | None) -> Iterator[LiveRun]:
    """Do every step before the first round; the executor is stopped at the end."""
    _check_seal(config, elsewhere)
    if config.method.needs.asynchronous:
        _check_pace(config, elsewhere)
    federation = assemble(config, _at_home(config, directory, elsewhere))
    _check_validation(federation)
    secret = secret_of(config, directory, elsewhere is not None)
    schedule = _freeze(config, directory, secret)
    write_facts(federation, schedule, directory)
    if elsewhere is not None and is_unprotected(config):
        directory.log(f"warning: {UNPROTECTED}")
        logging.getLogger("fedreuse").warning(UNPROTECTED)
    for note in federation.prepared.data.notes:
        directory.log(f"data: {note}")
    if note := evaluation_note(federation):
        directory.log(note)
    with LiveRun(federation, directory, schedule, secret).connected(elsewhere) as live:
        yield live


def _check_seal(config: RunConfig, elsewhere: ExecutorConfig | None) -> None:
    """Refuse to seal a test split that could not be opened later."""
    if config.test == "sealed" and elsewhere is not None and config.method.is_personal:
        raise ConfigError(
            "test: sealed on real nodes, with a method whose clients have models of their own, could not be opened "
            "later, because those models stay at the nodes; use test: open, or a method with one model"
        )
    if is_at_home(config.task.dataset) and (config.test == "sealed" or config.keep.model == "best"):
        raise ConfigError(
            "test: sealed and keep.model: best need examples at the server after the run, but task.name is at_home; "
            "use test: open (nodes test the last model, once) and keep.model: last"
        )


def _check_pace(config: RunConfig, elsewhere: ExecutorConfig | None) -> None:
    """Check that replies to an asynchronous method have an order of arrival: a simulated one, or a real one."""
    if elsewhere is None:
        require_clock(config)
    elif not isinstance(config.faults, NoFaults):
        raise ConfigError(
            "faults are simulated, but an asynchronous method on nodes meets real ones; drop faults, or use "
            "`fedreuse run` with devices"
        )


def _check_validation(federation: Federation) -> None:
    """Refuse to choose by validation scores where there are no validation examples."""
    config = federation.config
    selects = "rounds.patience" if config.rounds.patience is not None else "keep.model: best"
    if (config.rounds.patience is not None or config.keep.model == "best") and not federation.prepared.has_validation:
        raise ConfigError(
            f"{selects} needs validation examples, but every client is too small to hold any out; raise "
            "task.validation, or use fewer clients"
        )


@runtime_checkable
class Census(Protocol):
    """Executor settings that can ask remote clients for their numbers of examples."""

    def census(self, schema: ModelSchema, num_clients: int, log: Callable[[str], object]) -> list[int]:
        """Return the number of training examples of every client; 0 for absent ones."""
        ...


def _at_home(config: RunConfig, directory: RunDirectory, elsewhere: ExecutorConfig | None) -> PreparedTask | None:
    """Return the server's side of data that stay at the clients, with the counts that they reported at the start."""
    if not is_at_home(config.task.dataset):
        return None
    if not isinstance(elsewhere, Census):
        raise ConfigError(
            "task.name: at_home is for deployments, where nodes have the data (`fedreuse deploy`, `supernode --data`); "
            "a simulation needs them here: dataset files reads one folder per client"
        )
    known = directory.path / EXAMPLES_FILE
    if not known.exists():
        schema = assemble(config, at_server(config.task, [0] * config.task.clients)).schema
        directory.write_json(EXAMPLES_FILE, elsewhere.census(schema, config.task.clients, directory.log))
    return at_server(config.task, read_json(known))


def _freeze(config: RunConfig, directory: RunDirectory, secret: bytes | None) -> Schedule:
    """Draw the cohorts of all rounds from the seed, or from the server's secret if there is one."""
    rounds = config.rounds
    return load_or_freeze(
        directory.path / "schedule.json",
        config.task.clients,
        rounds.count,
        rounds.cohort,
        rounds.availability,
        config.seed,
        secret,
    )
