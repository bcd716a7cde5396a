"""Clients on Ray actors, on this machine or on a cluster; results are bit-identical to the serial executor.

Ray schedules actors, transports data and models (once per node, in its object store) and detects lost actors. Arrays
for one client alone travel with its job. A lost actor is replaced as soon as resources allow; its job is repeated by
the next idle actor.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.core.cpu import cpu, usable_cores
from fedreuse.core.errors import ConfigError, FedreuseError, RunError, require
from fedreuse.engine.executors.executor import ExecutorConfig, executors
from fedreuse.engine.executors.shared_memory import Pieces, lay_out_arrays, lay_out_envelopes, open_arrays
from fedreuse.engine.executors.worker import ClientsJob, Failure, Worker
from fedreuse.engine.executors.worker_pool import WorkerPoolExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.engine.executors.executor import Site, WorkerSetup
    from fedreuse.engine.executors.shared_memory import EnvelopePlace, Place
    from fedreuse.engine.executors.worker import Job, Outcome

__all__ = ["ActorPool", "Ray"]

_CONNECT_SECONDS = 10.0  # for a connection to another machine
_HTTP2_SETTINGS = b"\x04"
_HTTP2_HEAD = 9  # bytes of a frame's header; the fourth is the frame's type
_HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + _HTTP2_SETTINGS + b"\0\0\0\0\0"
"""Connection preface of a client (RFC 9113, section 3.4); the server answers with its settings."""


@executors.register("ray")
@dataclass(frozen=True)
class Ray(ExecutorConfig):
    """Ray actors with one CPU each, on this machine or on a cluster.

    Args:
        workers: Number of actors, at least 1; or `auto`: one per CPU.
        address: null for this machine alone; `auto` or `host:port` for a running cluster.

    Example: `executor: {name: ray, workers: 8, address: auto}`.
    """

    workers: int | Literal["auto"] = "auto"
    address: str | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.workers == "auto" or self.workers >= 1, "executor.workers must be at least 1", self.workers)

    def start(self, site: Site) -> WorkerPoolExecutor:
        """Start Ray, or join the cluster, and start the actors."""
        if site.setup is None:
            raise ConfigError("executor ray needs a task that other processes can build; use executor: serial")
        ray = _import_ray()
        is_alone = self.address is None
        asked = self.workers
        if asked != "auto":
            asked = site.num_workers(asked, usable_cores() if is_alone else asked)
        is_ours = _connect(ray, self.address, asked)
        count = int(ray.cluster_resources().get("CPU", 1)) if asked == "auto" else asked
        return WorkerPoolExecutor(site, ActorPool(ray, is_ours, site, site.setup, count))


class ActorPool:
    """Workers that are Ray actors."""

    shares_files = False

    def __init__(self, ray: Any, is_ours: bool, site: Site, setup: WorkerSetup, count: int) -> None:
        """Start the actors; `is_ours`: Ray was started, or joined, for this run and is shut down by `close`."""
        self._ray, self._is_ours, self._warn = ray, is_ours, site.warn
        layout, places = lay_out_arrays(site.arrays)
        self._shared = ray.put(layout.to_array()), places
        self._setup = setup
        self._actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Actor)
        self._is_mixed = False
        self._failed_starts = 0
        self._actors: list[Any] = [None] * count
        self._starting: dict[Any, int] = {}
        self._busy: dict[Any, int] = {}
        for number in range(count):
            self._start(number)

    @contextmanager
    def place(self, envelopes: Sequence[Envelope]) -> Iterator[tuple[list[EnvelopePlace], Any]]:
        """Put what several envelopes share into the object store, which sends it at most once to each node."""
        layout, places = lay_out_envelopes(envelopes)
        yield places, (layout, self._ray.put(layout.to_array(0, layout.shared)))

    def idle(self) -> list[int]:
        """Return the workers that are ready and have no job."""
        if self._starting:
            ready, _ = self._ray.wait(list(self._starting), num_returns=len(self._starting), timeout=0)
            for reference in ready:
                self._note_start(reference)
        occupied = {*self._starting.values(), *self._busy.values()}
        return [number for number in range(len(self._actors)) if number not in occupied]

    def give(self, worker: int, job: Job, area: Any) -> None:
        """Give a worker a job, with the arrays that only its clients get."""
        layout, shared = area
        requests = [member.request for member in job.members] if isinstance(job, ClientsJob) else [job.model]
        own = {
            start: layout.to_array(start, end) for start, end in (request.own for request in requests) if end > start
        }
        self._busy[self._actors[worker].do.remote(job, shared, own)] = worker

    def wait(self) -> Iterator[tuple[int, Outcome | None]]:
        """Wait for answers, deaths (None) or a worker that became ready."""
        ready, _ = self._ray.wait([*self._busy, *self._starting], num_returns=1)
        for reference in ready:
            if reference in self._starting:
                self._note_start(reference)
                continue
            number = self._busy.pop(reference)
            answer: Outcome | None = self._get(reference)
            if answer is None:
                self._start(number)
            yield number, answer

    def close(self) -> None:
        """Stop all workers."""
        for actor in self._actors:
            with suppress(Exception):  # a lost actor cannot be killed again
                self._ray.kill(actor)
        self._actors, self._shared = [], None  # type: ignore[assignment]  # a closed pool is not used again
        if self._is_ours:
            self._ray.shutdown()

    def _start(self, number: int) -> None:
        """Request an actor; Ray chooses node and time."""
        self._actors[number] = self._actor.remote(self._setup, *self._shared)
        self._starting[self._actors[number].ready.remote()] = number

    def _note_start(self, reference: Any) -> None:
        """Handle an actor that is ready, failed, or was lost while starting."""
        number = self._starting.pop(reference)
        answer = self._get(reference)
        if answer is None:
            self._failed_starts += 1
            if self._failed_starts > 2 * len(self._actors):
                raise RunError("Ray actors end while they start; see Ray's logs, or use executor: pool")
            self._start(number)
        elif isinstance(answer, Failure):
            error = answer.error
            raise error if isinstance(error, FedreuseError) else RunError(f"a worker failed:\n{error}")
        else:
            self._failed_starts = 0
            # Other vector instructions add in another order, so the same client may give other last bits there.
            if answer != cpu()["instruction_set"] and not self._is_mixed:
                self._is_mixed = True
                self._warn(f"the cluster mixes CPU types ({answer} beside ours): bits may differ from run to run")

    def _get(self, reference: Any) -> Any:
        """Return an actor's answer; None if the actor or its node was lost."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise RunError(f"a Ray actor failed: {error}") from None
        except self._ray.exceptions.RayError:
            return None


class Actor:
    """A worker as Ray runs it."""

    def __init__(self, setup: WorkerSetup, shared: np.ndarray, places: Mapping[str, Place]) -> None:
        """Build the site; an error is kept and returned by `ready`, because Ray would wrap it."""
        self._failure: Failure | None = None
        try:
            self._worker = Worker(setup(open_arrays(shared, places)))
        except Exception as error:
            self._failure = Failure.of(error)

    def ready(self) -> Failure | list[str]:
        """Return the instruction set of this CPU, or the failure of the constructor."""
        instructions: list[str] = cpu()["instruction_set"]
        return self._failure or instructions

    def do(self, job: Job, shared: np.ndarray, own: Mapping[int, np.ndarray]) -> Outcome:
        """Do a job whose arrays Ray has transported to this node."""
        return self._worker.do(job, Pieces({0: shared, **own}))


def _import_ray() -> Any:
    # No usage statistics are sent, and Ray does not change the visible accelerators.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "executor ray needs Ray, which is not installed; `pip install 'fedreuse[cluster]'`, or use executor: pool"
        ) from None
    return ray


def _connect(ray: Any, address: str | None, workers: int | Literal["auto"]) -> bool:
    """Start Ray on this machine, or join a cluster; False if this process is part of one already."""
    if ray.is_initialized():
        return False
    start: Callable[..., object] = ray.init
    quiet = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
    if address is None:
        # One slot per worker, even on fewer cores: otherwise Ray would never start the surplus actors.
        slots = {} if workers == "auto" else {"num_cpus": workers}
        start("local", _node_ip_address="127.0.0.1", **slots, **quiet)
        return True
    try:
        _probe(address)
        start(address, log_to_driver=False, configure_logging=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise RunError(
            f"executor.address is {address!r}, but no Ray cluster answers there ({error}); start one with "
            "`ray start --head`, or set executor.address: null for this machine alone"
        ) from None
    return True


def _probe(address: str) -> None:
    """Check that an HTTP/2 server, as Ray is one, answers; Ray itself would retry and log errors for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return
    with socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS) as line:
        if os.environ.get("RAY_USE_TLS", "0") == "1":
            return  # a TLS server does not answer plain text
        line.sendall(_HTTP2_HELLO)
        answer = line.recv(_HTTP2_HEAD)
        if answer[3:4] != _HTTP2_SETTINGS:
            raise ConnectionError("the server there is not Ray")
