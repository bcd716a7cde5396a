"""Predicted cost of a run: bytes, simulated time, memory at both ends, computing time, disk.

A rehearsal measures bytes and times of single messages and steps; the run's schedule says how often each occurs. The
prediction ignores faults and resynchronisation. Where scores decide which clients train, it is made twice: for as many
and for as few trainings as the schedule allows. Of asynchronous methods a reply is counted for every request, and the
server's caches are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.dense import dense_reference
from fedreuse.config.run_config import require_clock
from fedreuse.core.cohort import Cohort
from fedreuse.engine.schedule import Schedule
from fedreuse.runs.federation import assemble
from fedreuse.runs.rehearsal import REHEARSED, rehearse

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.cohort import Attendance
    from fedreuse.runs.federation import Federation
    from fedreuse.runs.rehearsal import Crossed, Rehearsal

__all__ = ["LineShare", "Prediction", "predict"]

_ROW_BYTES = 120
"""Compressed bytes of one ledger row in a run directory."""
_TIMED_EXAMPLES = 200
"""Validation examples that are timed."""


@dataclass(frozen=True)
class LineShare:
    """The messages of one client where a method divides bytes by line.

    Attributes:
        client: Id of the client.
        up: Bits per second to the server.
        down: Bits per second from the server.
        request_bytes: Largest request from its second round on.
        reply_bytes: Largest reply.
        transfer_seconds: Time of both on this line, without latency.
        seconds: Time from request to reply, with latency and training.
    """

    client: int
    up: float
    down: float
    request_bytes: int
    reply_bytes: int
    transfer_seconds: float
    seconds: float


Sizes = Sequence[tuple[int, int]]
"""Bytes of each client's request and reply, where they differ; else empty."""


@dataclass(frozen=True)
class Prediction:
    """Predicted cost of one run; where scores decide which clients train, of one with as many trainings as possible.

    Bytes are those of the boundary `messages`, headers included.

    Attributes:
        rounds: Number of rounds.
        clients: Number of clients.
        visits: Selections of a client, over all rounds.
        request_bytes: Bytes to one client in one round, from its second round on, after no absence.
        reply_bytes: Bytes from one client in such a round.
        down_bytes: Bytes to all clients in the whole run.
        up_bytes: Bytes from all clients in the whole run.
        dense_down_bytes: The same of dense FedAvg.
        dense_up_bytes: The same of dense FedAvg.
        server_memory_bytes: State of method and links at the server at the end of the run.
        client_memory_bytes: State of method and links at one client.
        compute_seconds: Computing time on one core of this machine.
        disk_bytes: Size of the run directory.
        simulated_seconds: Simulated time of all rounds; None without devices.
        too_slow: Seconds that each client needs which never answers within `rounds.deadline`, by client.
        lines: Messages of every client, where the method divides bytes by line.
        because: Choices that the method made for this federation, in words.
        idle: The same with as few trainings as possible; None if scores decide nothing.
    """

    rounds: int
    clients: int
    visits: int
    request_bytes: int
    reply_bytes: int
    down_bytes: int
    up_bytes: int
    dense_down_bytes: int
    dense_up_bytes: int
    server_memory_bytes: int
    client_memory_bytes: int
    compute_seconds: float
    disk_bytes: int
    simulated_seconds: float | None = None
    too_slow: Mapping[int, float] = field(default_factory=dict)
    lines: tuple[LineShare, ...] = ()
    because: str = ""
    idle: Prediction | None = None

    @property
    def share(self) -> float:
        """Bytes of both directions, as a share of those of dense FedAvg."""
        return (self.down_bytes + self.up_bytes) / (self.dense_down_bytes + self.dense_up_bytes)

    def line_seconds(self, bits_per_second: float) -> float:
        """Return the transfer time of all rounds if every client has a line of this bandwidth in each direction."""
        return 8 * self.rounds * (self.down_bytes + self.up_bytes) / self.visits / bits_per_second

    def to_plain(self) -> dict[str, Any]:
        """Return the prediction as plain data, for JSON."""
        plain = {**asdict(self), "share": self.share}
        return plain if self.idle is None else {**plain, "idle": self.idle.to_plain()}


def predict(config: RunConfig) -> Prediction:
    """Predict the cost of a run.

    Args:
        config: The configuration; its data must be available.

    Returns:
        The prediction. Making it takes two training steps of a few clients in each of six rounds.

    Raises:
        ConfigError: As the run would, before its first round.

    Example:
        >>> from fedreuse import load
        >>> from fedreuse.runs.prediction import predict
        >>> task = {"name": "digits", "clients": 8, "limit": 300}
        >>> cost = predict(load({"task": task, "network": "mlp", "rounds": {"count": 20, "cohort": 4}}))
        >>> cost.visits, round(cost.share, 2)
        (80, 1.0)
    """
    require_clock(config)
    federation = assemble(config)
    rounds = config.rounds
    schedule = Schedule.draw(config.task.clients, rounds.count, rounds.cohort, rounds.availability, config.seed)
    cohorts = [
        Cohort(number, clients, config.seed, population=federation.population)
        for number, clients in enumerate(schedule.cohorts, start=1)
    ]
    rehearsal, method = rehearse(federation), federation.recipe.method
    per_example = _validation_seconds(federation)
    resolution = config.method.resolve(config.scope(federation.schema))
    sizes = () if resolution is None else resolution.sizes
    lines, because = _line_shares(federation, sizes, rehearsal), "" if resolution is None else resolution.because
    if method.needs.asynchronous:
        asked, seconds = _at_their_own_pace(federation, cohorts, rehearsal, sizes)
        costs = _costs(federation, asked, method.attendance(asked, is_busy=True), rehearsal, per_example, sizes)
        return replace(costs, simulated_seconds=seconds, too_slow={}, lines=lines, because=because)
    busy, idle = (
        _costs(federation, cohorts, method.attendance(cohorts, is_busy=is_busy), rehearsal, per_example, sizes)
        for is_busy in (True, False)
    )
    busy, idle = (replace(costs, lines=lines, because=because) for costs in (busy, idle))
    return busy if busy == idle else replace(busy, idle=idle)


def _line_shares(federation: Federation, sizes: Sizes, rehearsal: Rehearsal) -> tuple[LineShare, ...]:
    """Return the messages and times of every client, by its line."""
    fleet = federation.fleet
    if fleet is None:
        return ()
    shares = []
    for client, (request, reply) in enumerate(sizes):
        device, flops = fleet.device(client), _flops(federation, client, rehearsal)
        up, down = device.up.usual, device.down.usual
        transfer = 8 * request / down + 8 * reply / up
        seconds = device.timing(0.0, request, flops, reply).arrived
        shares.append(LineShare(client, up, down, request, reply, transfer, seconds))
    return tuple(shares)


def _flops(federation: Federation, client: int, rehearsal: Rehearsal) -> int:
    """Return the floating-point operations of a client's training in one round."""
    examples = int(federation.population.examples[client])
    return round(federation.config.local.epochs * examples * rehearsal.flops_per_example)


def _costs(
    federation: Federation,
    cohorts: Sequence[Cohort],
    attendance: Attendance,
    rehearsal: Rehearsal,
    seconds_per_example: float,
    sizes: Sizes,
) -> Prediction:
    rounds, dense = federation.config.rounds, dense_reference(federation.schema)
    visits = [
        (cohort.round_number, client, client in trained)
        for cohort, trained in zip(cohorts, attendance.trained, strict=True)
        for client in cohort.clients
    ]
    crossed = _bytes(visits, rehearsal, dense.request_bytes, sizes)
    down, up = (round(sum(way)) for way in zip(*crossed, strict=True)) if crossed else (0, 0)
    simulated, too_slow = _simulated(federation, visits, crossed, rehearsal)
    met = len({client for _, client, _ in visits})
    shared = min(rehearsal.missed * max(0, rounds.count - REHEARSED), dense.request_bytes)
    by_client = met * rehearsal.link_bytes_per_client + attendance.remembered * rehearsal.method_bytes_per_client
    server = rehearsal.server_bytes + by_client + round(shared)
    on_disk = server + met * rehearsal.client_bytes + 2 * federation.schema.dense_bytes + 2 * _ROW_BYTES * len(visits)
    reused = sum(not is_trained for *_, is_trained in visits) / max(1, len(visits) - len(cohorts[0].clients))
    further, idle = rehearsal.further, rehearsal.reused or rehearsal.further
    return Prediction(
        rounds=rounds.count,
        clients=federation.config.task.clients,
        visits=len(visits),
        request_bytes=round((1 - reused) * further.down + reused * idle.down),
        reply_bytes=round((1 - reused) * further.up + reused * idle.up),
        down_bytes=down,
        up_bytes=up,
        dense_down_bytes=len(visits) * dense.request_bytes,
        dense_up_bytes=len(visits) * dense.reply_bytes,
        server_memory_bytes=server,
        client_memory_bytes=rehearsal.client_bytes,
        compute_seconds=_seconds(federation, visits, rehearsal, seconds_per_example),
        disk_bytes=on_disk,
        simulated_seconds=simulated,
        too_slow=too_slow,
    )


def _bytes(
    visits: list[tuple[int, int, bool]], rehearsal: Rehearsal, dense: int, sizes: Sizes
) -> list[tuple[float, float]]:
    """Return the bytes of every visit, down and up; `dense` is the size of a dense request, the most that is sent."""
    if sizes:
        return [_sizes_of(client, number, rehearsal, sizes) for number, client, _ in visits]
    last: dict[int, int] = {}
    found = []
    for number, client, is_trained in visits:
        # with a shared downlink, a client that joins late has missed all rounds since the first
        is_further = client in last or rehearsal.missed > 0
        crossed: Crossed = rehearsal.first if number == 1 else rehearsal.further if is_further else rehearsal.joining
        if not is_trained and rehearsal.reused is not None:
            crossed = rehearsal.reused
        away = max(0, number - last.get(client, 1) - 1)
        found.append((crossed.down + min(rehearsal.missed * away, max(0.0, dense - crossed.down)), crossed.up))
        last[client] = number
    return found


def _sizes_of(client: int, round_number: int, rehearsal: Rehearsal, sizes: Sizes) -> tuple[float, float]:
    """Return the bytes of a visit, down and up, of an asynchronous method or one that divides bytes by line."""
    crossed = rehearsal.first if round_number == 1 else rehearsal.further
    request, reply = sizes[client] if sizes else (crossed.down, crossed.up)
    return crossed.down if round_number == 1 else request, reply


def _at_their_own_pace(
    federation: Federation, cohorts: Sequence[Cohort], rehearsal: Rehearsal, by_client: Sizes
) -> tuple[list[Cohort], float]:
    """Return the clients that an asynchronous method asks in each round, and the time of all rounds."""
    clock, buffer = federation.clock(), federation.recipe.method.needs.buffer
    assert clock is not None
    now, under_way, asked = 0.0, dict[int, float](), []
    for cohort in cohorts:
        idle = [client for client in cohort.clients if client not in under_way]
        waiting = [idle[at] for at in cohort.rng("order of requests").permutation(len(idle))]
        clients: list[int] = []
        for _ in range(buffer):
            for _ in range(min(len(waiting), len(cohort.clients) - len(under_way))):
                clients.append(client := waiting.pop())
                down, up = _sizes_of(client, cohort.round_number, rehearsal, by_client)
                sizes = round(down), _flops(federation, client, rehearsal), round(up)
                under_way[client] = clock.fleet.device(client).timing(now, *sizes).arrived
            if under_way:
                time, client = min((time, client) for client, time in under_way.items())
                del under_way[client]
                now = max(now, time)
        asked.append(replace(cohort, clients=tuple(sorted(clients))))
    return asked, now


def _simulated(
    federation: Federation,
    visits: list[tuple[int, int, bool]],
    crossed: list[tuple[float, float]],
    rehearsal: Rehearsal,
) -> tuple[float | None, dict[int, float]]:
    """Return the simulated time of all rounds, and the seconds of each client that never answers in time."""
    clock = federation.clock()
    if clock is None:
        return None, {}
    rounds: dict[int, dict[int, tuple[float, float, int]]] = {}
    for (number, client, is_trained), sizes in zip(visits, crossed, strict=True):
        flops = _flops(federation, client, rehearsal) if is_trained else 0
        rounds.setdefault(number, {})[client] = (*sizes, flops)
    now, shortest, answering = 0.0, dict[int, float](), set[int]()
    for members in rounds.values():
        times = {
            client: clock.fleet.device(client).timing(now, round(down), flops, round(up)).arrived
            for client, (down, up, flops) in members.items()
        }
        for client, time in times.items():
            shortest[client] = min(shortest.get(client, time - now), time - now)
            answering |= {client} if time - now <= (clock.deadline or time) else set()
        now = clock.in_time(now, now, times, len(members))[1]
    return now, {client: shortest[client] for client in sorted(shortest.keys() - answering)}


def _seconds(
    federation: Federation, visits: list[tuple[int, int, bool]], rehearsal: Rehearsal, seconds_per_example: float
) -> float:
    """Return the time of training by steps, of coding by visits, and of validation by examples."""
    local, examples = federation.config.local, federation.population.examples
    steps = sum(local.epochs * ceil(int(examples[client]) / local.batch) for _, client, trains in visits if trains)
    rounds = federation.config.rounds
    evaluated = sum(rounds.is_evaluated(number) for number in range(1, rounds.count + 1)) * federation.num_validation
    return (
        steps * rehearsal.seconds_per_step
        + len(visits) * rehearsal.seconds_per_client
        + evaluated * seconds_per_example
    )


def _validation_seconds(federation: Federation) -> float:
    """Return the time of validating one example."""
    part = min(_TIMED_EXAMPLES, federation.num_validation)
    began = perf_counter()
    federation.validate(federation.initial, 0, part)
    return (perf_counter() - began) / max(1, part)
