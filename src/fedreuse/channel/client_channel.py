"""A client's end of a channel: decodes requests and encodes the replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from fedreuse.channel.frame import Agreement, Frame, tag_of
from fedreuse.channel.layout import Arrays, to_numpy
from fedreuse.channel.server_channel import HELD, number_of
from fedreuse.channel.state_folder import StateFolder, check_name
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, FedreuseError, NotHeld, WireError
from fedreuse.core.message import Message
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import add, sub_bits
from fedreuse.core.values import value
from fedreuse.engine.ports import BITS, FORGOT, RESYNC, ClientPort
from fedreuse.engine.state.records import ClientMemory, ClientRecord, MemoryLost

if TYPE_CHECKING:
    from types import TracebackType

    from fedreuse.core.method import Method
    from fedreuse.core.tensors import Tensors

__all__ = ["ClientChannel", "SendBack"]

_STATE = "client"


class SendBack(FedreuseError):
    """A request that needs no training: send `reply` to the server instead.

    The client lost its state or does not hold the model that the request builds on, or it answered this request before.

    Attributes:
        reply: The message for the server.

    Example:
        >>> import numpy as np
        >>> from fedreuse.channel import ClientChannel, SendBack, ServerChannel
        >>> server, client = ServerChannel(), ClientChannel("site-1")
        >>> request = server.encode({"weight": np.float32([1, 2])}, "site-1")
        >>> reply = client.encode(client.decode(request))
        >>> try:
        ...     client.decode(request)  # it arrives a second time
        ... except SendBack as error:
        ...     print(error.reply == reply)
        True
    """

    def __init__(self, reason: str, reply: bytes) -> None:
        """Keep the reply."""
        super().__init__(f"{reason}; send `reply` of this error to the server")
        self.reply = reply


@value
class _Site:
    """State of a client.

    Attributes:
        record: Its states of the links by exchange.
        answered: Checksums of request and reply of these exchanges.
        exchange: The exchange that was answered last.
        reply: The reply in it.
    """

    record: ClientRecord
    answered: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    exchange: int = 0
    reply: np.ndarray | None = None


@dataclass(frozen=True)
class _Pending:
    """A decoded request without a reply."""

    request: Envelope
    checksum: int
    message: Message
    memory: ClientMemory


class ClientChannel:
    """A client's end of a channel; the first message of the server brings coding and names of the arrays.

    Args:
        client: Name of the client, by which the server knows it: letters, digits, dots, dashes, underscores.
        folder: Folder of the state, created if absent; None keeps it in memory.
        initial: Arrays of the model before the first round, if the server passes the same.

    Raises:
        ConfigError: The name is invalid.
        RunDirectoryError: The folder is in use, damaged, or holds the state of another end.

    Example:
        >>> import numpy as np
        >>> from fedreuse import ClientChannel, ServerChannel
        >>> server, client = ServerChannel({"name": "top_k", "ratio": 0.5}), ClientChannel("site-1")
        >>> received = client.decode(server.encode({"weight": np.float32([1, 2])}, "site-1"))
        >>> reply = client.encode({"weight": received["weight"] + np.float32([3, 4])})
        >>> server.decode(reply, "site-1")["weight"].tolist()  # the 3 is sent later, with the next update
        [1.0, 6.0]
    """

    def __init__(self, client: str, folder: Path | str | None = None, *, initial: Arrays | None = None) -> None:
        """Open the folder."""
        self._client = check_name(client)
        self._initial = None if initial is None else to_numpy(initial)
        self._state = StateFolder(folder, f"client {client}")
        self._agreement: Agreement | None = None
        self._links: Method | None = None
        self._site = _Site(ClientRecord())
        self._pending: _Pending | None = None
        try:
            if (stored := self._state.fact("agreement")) is not None:
                self._set(Agreement.from_bytes(stored.encode()))
        except BaseException:
            self._state.close()
            raise

    def decode(self, data: bytes) -> dict[str, np.ndarray]:
        """Return the model of a request.

        Args:
            data: The request.

        Returns:
            The arrays by name.

        Raises:
            SendBack: The request cannot or need not be answered by training: send `reply` of the error.
            WireError: The bytes are damaged, of another version, or for another client; nothing has changed.
        """
        frame, checksum = Frame.from_bytes(data), crc32(data)
        if frame.agreement:
            self._agree(frame)
        agreement, site = self._agreement, self._site
        if agreement is None or frame.tag != self._tag(agreement, Envelope.address_of(frame.body)[2]):
            raise SendBack(f"{self._client} has no state for this message", _signal(FORGOT, frame, checksum))
        schema = agreement.layout.schema
        request = Envelope.from_bytes(frame.body, schema)
        # A second answer could differ from the first and replace the memory that the server has acknowledged.
        is_repeated = site.answered.get(request.exchange, (None, None))[0] == checksum
        if is_repeated and request.exchange == site.exchange and site.reply is not None:
            raise SendBack(f"exchange {request.exchange} was answered before", site.reply.tobytes())
        if is_repeated or (request.ack and request.exchange <= site.exchange):
            # a late message, whose reply the server ignores, or a server that was restored from an older copy
            reason = f"exchange {request.exchange} is older than {site.exchange}"
            raise SendBack(reason, _signal(FORGOT, frame, checksum))
        try:
            memory = site.record.resolve(request.ack, ClientMemory(None))
            message, memory = self._port(request).unpack(request, memory)
        except MemoryLost:
            raise SendBack(f"{self._client} lost its state", _signal(FORGOT, frame, checksum)) from None
        except NotHeld as error:
            raise SendBack(str(error), _signal(RESYNC, frame, checksum)) from None
        arrays = agreement.layout.to_arrays(from_groups(message.groups, "model", schema))
        self._pending = _Pending(request, checksum, message, memory)
        return arrays

    def encode(self, arrays: Arrays | None = None, *, is_update: bool = False) -> bytes:
        """Return the reply to the request that was decoded last.

        Args:
            arrays: The trained model by name: NumPy arrays or torch tensors. None: confirm the request without arrays,
                for instance after an evaluation.
            is_update: Whether the arrays are an update (trained minus received) instead of a model.

        Returns:
            The message.

        Raises:
            ConfigError: No request is open, or the arrays differ from those of the request.
        """
        pending, agreement = self._pending, self._agreement
        if pending is None or agreement is None:
            raise ConfigError("there is no request to answer: decode one first")
        if arrays is None:
            reply = Message(HELD)
        else:
            given = agreement.layout.model(to_numpy(arrays))
            reply = Message("update", self._groups(given, pending, agreement, is_update=is_update))
        request, held = pending.request, pending.message.groups
        envelope, uplink, _ = self._port(request).pack(request, held, reply, pending.memory, settles=False)
        data = Frame(pending.checksum, envelope.to_bytes()).to_bytes()
        proposed = replace(pending.memory, uplink=uplink)
        record = self._site.record.propose(proposed, request.exchange, request.durable)
        # stored before it is sent: the server may build on it as soon as the reply arrives
        checksums = {**self._site.answered, request.exchange: (pending.checksum, crc32(data))}
        answered = {number: checksums[number] for number in record.memories}
        site = _Site(record, answered, request.exchange, np.frombuffer(data, np.uint8))
        self._state.save(_STATE, site, agreement.layout.schema)
        self._site, self._pending = site, None
        return data

    @property
    def is_asked(self) -> bool:
        """True if a decoded request has no reply yet."""
        return self._pending is not None

    def close(self) -> None:
        """Release the folder."""
        self._state.close()

    def __enter__(self) -> ClientChannel:
        """Return the channel."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Release the folder."""
        self.close()

    def _agree(self, frame: Frame) -> None:
        """Take the agreement of a first message; that of another server's state starts over."""
        agreement = Agreement.from_bytes(frame.agreement)
        if frame.tag != tag_of(agreement.session, self._client, 0):
            raise WireError(f"the message is for another client than {self._client}")
        if self._agreement is not None and self._agreement.to_bytes() == frame.agreement:
            return
        self._set(agreement)
        self._site = _Site(ClientRecord())
        self._state.save(_STATE, self._site, agreement.layout.schema)
        self._state.set_facts(agreement=frame.agreement.decode())

    def _tag(self, agreement: Agreement, ack: int) -> int | None:
        """Return the tag of a request that builds on exchange `ack`; None without memory of it."""
        if ack and ack not in self._site.answered:
            return None
        return tag_of(agreement.session, self._client, self._site.answered[ack][1] if ack else 0)

    def _set(self, agreement: Agreement) -> None:
        initial = None if self._initial is None else agreement.layout.model(self._initial)
        self._links = replace(agreement.links(), initial=initial)
        self._agreement = agreement
        self._site = self._state.load(_STATE, agreement.layout.schema, _Site) or _Site(ClientRecord())

    def _port(self, request: Envelope) -> ClientPort:
        assert self._agreement is not None
        assert self._links is not None
        number, seed = number_of(self._client), self._agreement.seed
        return ClientPort(
            self._links,
            self._agreement.layout.schema,
            lambda purpose: stream(seed, purpose, request.round_number, number),
            number,
        )

    @staticmethod
    def _groups(given: Model, pending: _Pending, agreement: Agreement, *, is_update: bool) -> dict[str, Tensors]:
        """Return the groups of a reply: an update, with corrections of its rounding if the coding is exact."""
        if is_update:
            return to_groups(given, "update")
        received = from_groups(pending.message.groups, "model", agreement.layout.schema)
        update = difference(given, received)
        if not agreement.is_exact:
            return to_groups(update, "update")
        correction = sub_bits(given.weights, add(received.weights, update.weights))
        groups = to_groups(Model(update.weights, given.buffers, given.counters), "update")
        return {**groups, BITS: correction}


def _signal(kind: str, frame: Frame, checksum: int) -> bytes:
    """Return a reply without content to a request that cannot be decoded."""
    round_number, exchange, *_ = Envelope.address_of(frame.body)
    return Frame(checksum, Envelope(kind, round_number, exchange).to_bytes()).to_bytes()
