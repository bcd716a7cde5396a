"""What crossed: one row per envelope, one per selected client and round; boundaries are drawn over them later.

Where a meter stands at the nodes' lines, each exchange adds what it saw: a row per client and direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.core.local_trainer import Work

if TYPE_CHECKING:
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.message import Events
    from fedreuse.engine.executors.executor import Reply

__all__ = ["EventRow", "Ledger", "LedgerRow", "Measured", "row_from_plain", "row_to_plain"]

_PURPOSES = {"evaluate": "evaluation", "prefetch": "prefetch"}
_MEASURED = "measured"
Direction = Literal["down", "up"]


@dataclass(frozen=True)
class LedgerRow:
    """One envelope. `fields` holds the numerical bytes by `group:mode`; `total_bytes` is the serialized length.

    `body` tells where the bytes behind the header really go, by `group:mode:mask` (which coordinates) and
    `group:mode:values`; with the header they are the total. Only blocks that were coded have another body than fields.
    A measured row is no envelope: `fields` holds the bytes that a meter saw since the exchange before, by boundary.
    """

    round_number: int
    exchange: int
    client: int
    direction: Direction
    kind: str
    purpose: str
    status: str
    fields: Mapping[str, int]
    value_bytes: int
    header_bytes: int
    total_bytes: int
    work: Work = Work()
    body: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """Whether this row tells what a meter saw."""
        return self.status == _MEASURED

    def group_bytes(self, *groups: str) -> int:
        """Numerical bytes of some groups, or of all."""
        return sum(size for key, size in self.fields.items() if not groups or key.partition(":")[0] in groups)


@dataclass(frozen=True)
class EventRow:
    """How one selected client's contribution of one round came about."""

    round_number: int
    client: int
    outcome: str
    reason: str
    age: int | None
    score: float | None


@dataclass(frozen=True)
class Measured:
    """What crossed one client's line in one direction since the last look, in bytes by boundary."""

    client: int
    direction: Direction
    seen: Mapping[str, int]


@dataclass
class Ledger:
    """The rows of a run in order; a `meter` tells, when asked, what crossed since it was asked before."""

    rows: list[LedgerRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    meter: Callable[[], Iterable[Measured]] | None = None
    warn: Callable[[str], object] = str  # nobody listens, unless somebody is named

    def note(self, outgoing: Mapping[int, Envelope], arrived: Sequence[Reply], refused: Mapping[int, str]) -> None:
        """One exchange: every request that left, every reply that came, in time or not; replies share its purpose."""
        sizes: dict[tuple[int, ...], Any] = {}  # clients often share the same parcels
        for client, envelope in outgoing.items():
            self.rows.append(_row(client, envelope, "down", "in_time", Work(), sizes))
        for reply in sorted(arrived, key=lambda reply: reply.client):
            status = "refused" if reply.client in refused else reply.status
            if status == "refused":
                reason = refused[reply.client]
                self.warn(f"round {reply.envelope.round_number}: reply of client {reply.client} refused: {reason}")
            row = _row(reply.client, reply.envelope, "up", status, reply.work, {})
            asked = outgoing.get(reply.client, reply.envelope)
            self.rows.append(replace(row, purpose=_purpose(asked)))
        if self.meter is not None and outgoing:
            asked = next(iter(outgoing.values()))
            self.rows += [_measured_row(asked, measured) for measured in self.meter()]

    def close(self, round_number: int, events: Events) -> None:
        """The round is over."""
        self.events += [
            EventRow(round_number, event.client, event.outcome, event.reason, event.age, event.score)
            for event in events.clients
        ]
        for name, number in events.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number


def _row(
    client: int, envelope: Envelope, direction: Direction, status: str, work: Work, sizes: dict[tuple[int, ...], Any]
) -> LedgerRow:
    key = tuple(id(parcel) for parcel in envelope.parcels.values())
    if key not in sizes:
        sizes[key] = _fields(envelope), _body(envelope)
    fields, body = sizes[key]
    return LedgerRow(
        envelope.round_number, envelope.exchange, client, direction, envelope.kind,
        _purpose(envelope), status, fields, _value_bytes(envelope),
        envelope.size() - sum(body.values()), envelope.size(), work, body,
    )  # fmt: skip


def _measured_row(asked: Envelope, measured: Measured) -> LedgerRow:
    return LedgerRow(
        asked.round_number, asked.exchange, measured.client, measured.direction, "", _purpose(asked), _MEASURED,
        measured.seen, 0, 0, 0,
    )  # fmt: skip


def _purpose(envelope: Envelope) -> str:
    return _PURPOSES.get(envelope.kind, "training")


def _fields(envelope: Envelope) -> dict[str, int]:
    fields: dict[str, int] = {}
    for group, parcel in envelope.parcels.items():
        for block in parcel.all_blocks() if parcel is not None else ():
            key = f"{group}:{block.mode.name}"
            fields[key] = fields.get(key, 0) + block.field_bytes
    return fields


def _body(envelope: Envelope) -> dict[str, int]:
    body: dict[str, int] = {}
    for group, parcel in envelope.parcels.items():
        for block in parcel.all_blocks() if parcel is not None else ():
            masks, values = (f"{group}:{block.mode.name}:{part}" for part in ("mask", "values"))
            body[masks] = body.get(masks, 0) + block.mask_bytes
            body[values] = body.get(values, 0) + block.body_bytes - block.mask_bytes - block.head_bytes
    return {part: size for part, size in body.items() if size}


def _value_bytes(envelope: Envelope) -> int:
    """Flags 1 byte, numbers 4, strings their length; a silent group 1; a bare message is itself a flag."""
    silent = sum(parcel is None for parcel in envelope.parcels.values())
    if not envelope.parcels and not envelope.values:
        return 1
    return silent + sum(_value_size(value) for value in envelope.values.values())


def _value_size(value: object) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, tuple):
        return sum(_value_size(inner) for inner in value)
    return 4


def row_to_plain(row: LedgerRow | EventRow) -> dict[str, Any]:
    """A row as plain data."""
    return asdict(row)


def row_from_plain(plain: Mapping[str, Any]) -> LedgerRow:
    """A ledger row again."""
    return LedgerRow(**{**plain, "work": Work(**plain["work"])})
