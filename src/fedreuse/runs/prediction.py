"""What a run will cost, told before it starts: bytes, time on a line, memory at both ends, computing time, disk.

Bytes and times of single messages and steps are measured in a rehearsal; how often each comes follows from the frozen
schedule of the run. Faults, resynchronisation and what gates decide are not foreseen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.dense import dense_reference
from fedreuse.engine.schedule import Schedule
from fedreuse.runs.federation import assemble
from fedreuse.runs.rehearsal import REHEARSED, rehearse

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.runs.federation import Federation
    from fedreuse.runs.rehearsal import Crossed, Rehearsal

__all__ = ["Prediction", "predict"]

_ROW_BYTES = 120
"""One row of the ledger in a run directory, compressed."""
_WARM_LOOK = 200


@dataclass(frozen=True)
class Prediction:
    """What one run will cost.

    Bytes are of `messages`: everything that crosses, headers included. `request_bytes` and `reply_bytes` are those
    of one client in one round, from its second round on, after no absence; `down_bytes` and `up_bytes` those of the
    whole run, `dense_*` the same of dense FedAvg. Memory is what methods and links hold between rounds: of the server
    at the end of the run, of one client. Seconds are of one core of this machine.
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

    @property
    def share(self) -> float:
        """Bytes of both directions as a share of dense FedAvg's."""
        return (self.down_bytes + self.up_bytes) / (self.dense_down_bytes + self.dense_up_bytes)

    def line_seconds(self, bits_per_second: float) -> float:
        """How long all rounds wait for the lines, if every client has one of this bandwidth each way."""
        return 8 * self.rounds * (self.down_bytes + self.up_bytes) / self.visits / bits_per_second

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**asdict(self), "share": self.share}


def predict(config: RunConfig) -> Prediction:
    """What a run of this configuration will cost.

    Args:
        config: The configuration; its data must be there.

    Returns:
        The prediction. It takes two steps of training and a few rounds of coding to make.

    Raises:
        ConfigError: As the run would, before its first round.

    Example:
        >>> from fedreuse import load
        >>> from fedreuse.runs.prediction import predict
        >>> task = {"name": "digits", "clients": 8, "limit": 300}
        >>> found = predict(load({"task": task, "network": "mlp", "rounds": {"count": 20, "cohort": 4}}))
        >>> found.visits, round(found.share, 2)
        (80, 1.0)
    """
    federation = assemble(config)
    rounds = config.rounds
    schedule = Schedule.draw(config.task.clients, rounds.count, rounds.cohort, rounds.availability, config.seed)
    found, dense = rehearse(federation), dense_reference(federation.schema)
    visits = [(number, client) for number, cohort in enumerate(schedule.cohorts, start=1) for client in cohort]
    down, up = _bytes(visits, found, dense.request_bytes)
    met = len({client for _, client in visits})
    kept = min(found.missed * max(0, rounds.count - REHEARSED), dense.request_bytes)
    server = found.server_bytes + met * found.server_bytes_per_client + round(kept)
    on_disk = server + met * found.client_bytes + 2 * federation.schema.dense_bytes + 2 * _ROW_BYTES * len(visits)
    return Prediction(
        rounds=rounds.count,
        clients=config.task.clients,
        visits=len(visits),
        request_bytes=round(found.further.down),
        reply_bytes=round(found.further.up),
        down_bytes=down,
        up_bytes=up,
        dense_down_bytes=len(visits) * dense.request_bytes,
        dense_up_bytes=len(visits) * dense.reply_bytes,
        server_memory_bytes=server,
        client_memory_bytes=found.client_bytes,
        compute_seconds=_seconds(federation, visits, found),
        disk_bytes=on_disk,
    )


def _bytes(visits: list[tuple[int, int]], found: Rehearsal, dense: int) -> tuple[int, int]:
    """Of all visits, down and up: those of round 1, first ones of others, and the rest; `dense` is a dense request."""
    last: dict[int, int] = {}
    down = up = 0.0
    for number, client in visits:
        is_further = client in last or found.missed > 0  # what is missed is counted since round 1
        crossed: Crossed = found.first if number == 1 else found.further if is_further else found.joining
        away = max(0, number - last.get(client, 1) - 1)
        down += crossed.down + min(found.missed * away, max(0.0, dense - crossed.down))
        up += crossed.up
        last[client] = number
    return round(down), round(up)


def _seconds(federation: Federation, visits: list[tuple[int, int]], found: Rehearsal) -> float:
    """Training by the number of steps, coding by the number of visits, validation by the number of examples."""
    local, examples = federation.config.local, federation.population.examples
    steps = sum(local.epochs * ceil(int(examples[client]) / local.batch) for _, client in visits)
    rounds = federation.config.rounds
    looks = sum(rounds.is_evaluated(number) for number in range(1, rounds.count + 1)) * federation.num_validation
    part = min(_WARM_LOOK, federation.num_validation)
    began = perf_counter()
    federation.validate(federation.initial, 0, part)
    per_example = (perf_counter() - began) / max(1, part)
    return steps * found.seconds_per_step + len(visits) * found.seconds_per_client + looks * per_example
