"""The ledger of a run: one row per envelope, and one event per selected client and round.

Boundaries are applied to the rows later. If a meter counts bytes at the nodes' network interfaces, each exchange also
adds one measured row per client and direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.core.local_trainer import NO_WORK, Work

if TYPE_CHECKING:
    from fedreuse.accounting.durable_rows import DurableRows
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.message import Events
    from fedreuse.engine.executors.executor import Reply

__all__ = ["EventRow", "Ledger", "LedgerRow", "Measured", "row_from_plain", "row_to_plain"]

_PURPOSES = {"evaluate": "evaluation", "prefetch": "prefetch"}
_MEASURED = "measured"
Direction = Literal["down", "up"]


@dataclass(frozen=True, slots=True)  # a run keeps one per message
class LedgerRow:
    """One envelope, or one measurement of a meter.

    Attributes:
        round_number: The round, from 1.
        exchange: Number of the exchange of requests and replies.
        client: The client's id.
        direction: `down` (to the client) or `up`.
        kind: The message's kind.
        purpose: `training`, `evaluation` or `prefetch`.
        status: `in_time`, `late`, `abandoned` or `refused`; `measured` for a measurement.
        fields: Bytes of numerical fields by `group:mode`; of a measurement, bytes since the previous exchange by
            boundary.
        value_bytes: Bytes of the message's small values, counted by convention.
        header_bytes: Bytes of the frame and header.
        total_bytes: Length of the serialized envelope.
        work: The client's computation for a reply.
        body: Serialized bytes after the header, by `group:mode:mask` (positions of coordinates) and
            `group:mode:values`. They differ from `fields` only for packed blocks.
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
    work: Work = NO_WORK
    body: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """True for a measurement of a meter."""
        return self.status == _MEASURED

    def group_bytes(self, *groups: str) -> int:
        """Return the bytes of numerical fields of some groups, or of all."""
        return sum(size for key, size in self.fields.items() if not groups or key.partition(":")[0] in groups)


@dataclass(frozen=True, slots=True)
class EventRow:
    """The outcome of one selected client in one round (see `core.message.Event`)."""

    round_number: int
    client: int
    outcome: str
    reason: str
    age: int | None
    score: float | None


@dataclass(frozen=True)
class Measured:
    """Bytes by boundary that a client sent or received since the previous measurement."""

    client: int
    direction: Direction
    seen: Mapping[str, int]


@dataclass
class Ledger:
    """The rows and events of a run in order.

    Attributes:
        rows: Envelopes and measurements; those of a run's stored rounds are read from its journal.
        events: Outcomes of the selected clients, in the same way.
        counts: Sums of the counts that a method records.
        lags: By round, the mean distance between the server's model and those that its clients hold after the request,
            where the downlink keeps them.
        meter: Returns the measurements since the previous call; None without a meter.
        warn: Called with a message about each refused reply; ignored by default.
        alarms: Messages about steps that one client dominates, since they were last taken.
    """

    rows: list[LedgerRow] | DurableRows[LedgerRow] = field(default_factory=list)
    events: list[EventRow] | DurableRows[EventRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    lags: dict[int, float] = field(default_factory=dict)
    meter: Callable[[], Iterable[Measured]] | None = None
    warn: Callable[[str], object] = str  # `str` has no effect
    alarms: list[str] = field(default_factory=list)

    def note(
        self,
        outgoing: Mapping[int, Envelope],
        arrived: Sequence[Reply],
        refused: Mapping[int, str],
        round_number: int | None = None,
    ) -> None:
        """Add the rows of one exchange.

        Args:
            outgoing: Requests by client.
            arrived: All replies, in time or not.
            refused: Reason by client whose reply was refused.
            round_number: The round in which replies count; None: that of their request.
        """
        sizes = _Sizes()
        for client, envelope in outgoing.items():
            self.rows.append(_request_row(client, envelope, sizes))
        for reply in sorted(arrived, key=lambda reply: reply.client):
            status = "refused" if reply.client in refused else reply.status
            if status == "refused":
                reason = refused[reply.client]
                self.warn(f"round {reply.envelope.round_number}: reply of client {reply.client} refused: {reason}")
            request = outgoing.get(reply.client, reply.envelope)  # one from an earlier exchange has none here
            row = _reply_row(reply, request, status, sizes)
            self.rows.append(row if round_number is None else replace(row, round_number=round_number))
        if self.meter is not None and outgoing:
            request = next(iter(outgoing.values()))
            self.rows.extend(_measured_row(request, measured) for measured in self.meter())

    def note_repeated(self, request: Envelope, repeated: Mapping[tuple[int, Direction], int]) -> None:
        """Add rows of the bytes that crossed again, or in vain, because a long message was interrupted.

        Args:
            request: A request of the exchange.
            repeated: Bytes by client and direction.
        """
        place, purpose = (request.round_number, request.exchange), _purpose(request)
        for (client, direction), size in sorted(repeated.items()):
            self.rows.append(
                LedgerRow(*place, client, direction, "part", purpose, "abandoned", {}, 0, size, size, NO_WORK, {})
            )

    def take_alarms(self) -> list[str]:
        """Return the alarms since the last call."""
        taken, self.alarms = self.alarms, []
        return taken

    def close(self, round_number: int, events: Events) -> None:
        """Add the events and counts of a completed round."""
        self.events.extend(
            EventRow(round_number, event.client, event.outcome, event.reason, event.age, event.score)
            for event in events.clients
        )
        for name, number in events.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number


class _Sizes:
    """Sizes of the envelopes of one exchange, each computed once; equal mappings are one object."""

    def __init__(self) -> None:
        self._by_envelope: dict[int, tuple[Any, ...]] = {}
        self._by_parcels: dict[tuple[int, ...], tuple[dict[str, int], dict[str, int]]] = {}
        self._by_form: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._equal: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}

    def of(self, envelope: Envelope) -> tuple[Any, ...]:
        """Return fields, value bytes, header bytes, total bytes and body."""
        known = self._by_envelope.get(id(envelope))
        if known is not None:
            return known
        form = _form(envelope)
        known = None if form is None else self._by_form.get(form)
        if known is None:
            key = (*map(id, envelope.parcels.values()), *(len(value) for _, value in _numbers(envelope)))
            if key not in self._by_parcels:
                self._by_parcels[key] = self._one(_fields(envelope)), self._one(_body(envelope))
            fields, body = self._by_parcels[key]
            total = envelope.size()
            known = fields, _value_bytes(envelope), total - sum(body.values()), total, body
        self._by_envelope[id(envelope)] = known
        if form is not None:
            self._by_form[form] = known
        return known

    def _one(self, sizes: dict[str, int]) -> dict[str, int]:
        return self._equal.setdefault(tuple(sizes.items()), sizes)


def _form(envelope: Envelope) -> tuple[Any, ...] | None:
    """Return everything that the sizes of an envelope depend on; None if that is not known without computing them."""
    if envelope.values:
        return None
    form: list[Any] = [envelope.kind, envelope.keep]
    for group, parcel in envelope.parcels.items():
        if parcel is None or parcel.notes or parcel.more:
            return None
        form.append(group)
        if parcel.whole is not None:
            form.append(id(parcel.whole))
            continue
        for block in parcel.blocks:
            if block.mode.modelled is not None:
                return None
            form += block.mode.code, block.count
            form += [part.nbytes for part in block.fields]
    return tuple(form)


def _request_row(client: int, envelope: Envelope, sizes: _Sizes) -> LedgerRow:
    fields, value_bytes, header_bytes, total_bytes, body = sizes.of(envelope)
    return LedgerRow(
        envelope.round_number, envelope.exchange, client, "down", envelope.kind, _purpose(envelope), "in_time", fields,
        value_bytes, header_bytes, total_bytes, NO_WORK, body,
    )  # fmt: skip


def _reply_row(reply: Reply, request: Envelope, status: str, sizes: _Sizes) -> LedgerRow:
    envelope = reply.envelope
    fields, value_bytes, header_bytes, total_bytes, body = sizes.of(envelope)
    return LedgerRow(
        envelope.round_number, envelope.exchange, reply.client, "up", envelope.kind, _purpose(request), status, fields,
        value_bytes, header_bytes, total_bytes, reply.work, body,
    )  # fmt: skip


def _measured_row(request: Envelope, measured: Measured) -> LedgerRow:
    return LedgerRow(
        request.round_number, request.exchange, measured.client, measured.direction, "", _purpose(request), _MEASURED,
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
    return fields | {f"{name}:numbers": len(value) for name, value in _numbers(envelope)}


def _body(envelope: Envelope) -> dict[str, int]:
    body: dict[str, int] = {}
    for group, parcel in envelope.parcels.items():
        for block in parcel.all_blocks() if parcel is not None else ():
            masks, values = (f"{group}:{block.mode.name}:{part}" for part in ("mask", "values"))
            body[masks] = body.get(masks, 0) + block.mask_bytes
            body[values] = body.get(values, 0) + block.body_bytes - block.mask_bytes - block.head_bytes
    body |= {f"{name}:numbers:values": len(value) for name, value in _numbers(envelope)}
    return {part: size for part, size in body.items() if size}


def _numbers(envelope: Envelope) -> list[tuple[str, bytes]]:
    """Return the values that are numbers: they count like the coordinates of a group."""
    return [(name, value) for name, value in envelope.values.items() if isinstance(value, bytes)]


def _value_bytes(envelope: Envelope) -> int:
    """Return the bytes of values by convention: 1 per flag, 4 per number, the length of a string.

    A group without a parcel counts as 1 byte, and so does a message without groups and values: each is a flag.
    """
    silent = sum(parcel is None for parcel in envelope.parcels.values())
    if not envelope.parcels and not envelope.values:
        return 1
    return silent + sum(_value_size(value) for value in envelope.values.values() if not isinstance(value, bytes))


def _value_size(value: object) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, tuple):
        return sum(_value_size(inner) for inner in value)
    return 4


def row_to_plain(row: LedgerRow | EventRow) -> dict[str, Any]:
    """Return a row as plain data."""
    return asdict(row)


def row_from_plain(plain: Mapping[str, Any]) -> LedgerRow:
    """Return the ledger row of plain data."""
    return LedgerRow(**{**plain, "work": Work(**plain["work"])})
