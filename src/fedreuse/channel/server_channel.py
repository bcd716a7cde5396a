"""The server's end of a channel: requests to clients, and the replies that confirm them.

The commit rule is that of the engine (`engine/state/records.py`): an exchange counts at both ends if and only if the
server decoded its reply. A request or reply that is lost, repeated or late changes nothing at either end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from threading import RLock
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from fedreuse.channel.coding import Exact, parse_coding
from fedreuse.channel.frame import Agreement, Frame, tag_of
from fedreuse.channel.layout import Arrays, Layout, to_numpy
from fedreuse.channel.state_folder import StateFolder, check_name
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, FedreuseError, WireError
from fedreuse.core.int_map import IntMap
from fedreuse.core.message import Answer, Message
from fedreuse.core.model import Model, apply, difference, from_groups, to_groups
from fedreuse.core.registry import to_plain
from fedreuse.core.tensors import add, add_bits, is_finite, to_dense
from fedreuse.core.values import value
from fedreuse.engine.ports import BITS, ServerPort
from fedreuse.engine.state.records import Contact, ServerRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from fedreuse.core.method import Method
    from fedreuse.core.schema import ModelSchema
    from fedreuse.core.tensors import Tensors

__all__ = ["HELD", "AskAgain", "ServerChannel", "number_of"]

HELD = "held"
"""Kind of a reply that confirms a request and carries no arrays."""
_LARGEST_NUMBER = 1 << 31


class AskAgain(FedreuseError):
    """The client could not use the request: `encode` again for this client, and send the result.

    Example:
        >>> import numpy as np
        >>> from fedreuse.channel import AskAgain, ClientChannel, SendBack, ServerChannel
        >>> server, model = ServerChannel(), {"weight": np.float32([1, 2])}
        >>> client = ClientChannel("site-1")
        >>> _ = client.decode(server.encode(model, "site-1")), server.decode(client.encode(model), "site-1")
        >>> client = ClientChannel("site-1")  # its state is lost
        >>> try:
        ...     received = client.decode(server.encode(model, "site-1"))
        ... except SendBack as error:
        ...     reply = error.reply
        >>> try:
        ...     server.decode(reply, "site-1")
        ... except AskAgain as error:
        ...     print(error)
        ...     received = client.decode(server.encode(model, "site-1"))
        site-1: the client lost its memory
        >>> received["weight"].tolist()
        [1.0, 2.0]
    """


@value
class _Peer:
    """State of one client at the server.

    Attributes:
        contact: Its states of the links after the last exchange.
        last_reply: Checksum of the reply of that exchange.
        is_behind: Whether the next request must not build on any reference.
    """

    contact: Contact
    last_reply: int = 0
    is_behind: bool = False


@dataclass(frozen=True)
class _Open:
    """A request without a reply: its port, and its checksum, which the reply repeats."""

    port: ServerPort
    checksum: int


@dataclass(frozen=True)
class _Terms:
    """The agreement in the forms that every message needs."""

    agreement: Agreement
    links: Method
    encoded: bytes

    @property
    def schema(self) -> ModelSchema:
        return self.agreement.layout.schema


class ServerChannel:
    """The server's end of channels to any number of clients.

    Args:
        coding: `exact` (lossless), `top_k` (`{"name": "top_k", "ratio": 0.05}`: error feedback up, exact differences
            down), `lean` (`{"name": "lean", "budget": 0.02, "rounds": 100, "clients": 3}`: a byte budget for a run), or
            links of your own: `{"uplink": {"update": ...}, "downlink": {"model": ...}}`.
        folder: Folder of the state, created if absent; None keeps it in memory.
        initial: Arrays of the model before the first round, if clients make the same arrays themselves and pass them
            as well; the first message is then a difference. A client with other arrays is sent the whole model.
        seed: Seed of links that draw random numbers.
        max_norm: Updates with a larger L2 norm are refused; None: no limit.

    Raises:
        ConfigError: An invalid coding.
        RunDirectoryError: The folder is in use, damaged, or holds the state of another end or coding.

    Example:
        >>> import numpy as np
        >>> from fedreuse import ClientChannel, ServerChannel
        >>> server, client = ServerChannel("exact"), ClientChannel("site-1")
        >>> model = {"weight": np.zeros((2, 3), np.float32)}
        >>> received = client.decode(server.encode(model, "site-1"))
        >>> trained = {"weight": received["weight"] + 0.5}
        >>> server.decode(client.encode(trained), "site-1")["weight"].tolist()
        [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
    """

    def __init__(
        self,
        coding: str | Mapping[str, Any] = "exact",
        folder: Path | str | None = None,
        *,
        initial: Arrays | None = None,
        seed: int = 101,
        max_norm: float | None = None,
    ) -> None:
        """Check the coding and open the folder; nothing is sent yet."""
        self._coding = parse_coding(coding)
        self._initial = None if initial is None else to_numpy(initial)
        self._seed, self._max_norm = seed, max_norm
        self._state = StateFolder(folder, "the server")
        self._terms: _Terms | None = None
        self._open: dict[str, _Open] = {}
        """Requests without a reply, by client."""
        self._lock = RLock()  # frameworks call it from a thread per client
        try:
            self._restore()
        except BaseException:
            self._state.close()
            raise

    def encode(self, arrays: Arrays, client: str, *, round_number: int | None = None) -> bytes:
        """Return the request that carries a model to a client; an open request to this client is given up.

        Args:
            arrays: The model's arrays by name: NumPy arrays or torch tensors.
            client: Name of the client.
            round_number: The round, from 1, for links that depend on it; None: the number of the exchange.

        Returns:
            The message.

        Raises:
            ConfigError: The arrays differ from those of former messages, or cannot be sent.
        """
        found = to_numpy(arrays)
        with self._lock:
            terms = self._agreed(found)
            model = terms.agreement.layout.model(found)
            peer, exchange = self._peer(client), self._state.count(client)
            number = number_of(client)
            record = ServerRecord(None, IntMap({number: peer.contact}), exchange, exchange)
            port = ServerPort(
                terms.links, record, round_number or exchange + 1, terms.schema, terms.agreement.seed, is_channel=True
            )
            if peer.is_behind:
                port.behind.add(number)
            answers = _answers(terms.schema, is_exact=terms.agreement.is_exact)
            envelope = port.pack({number: Message("train", to_groups(model, "model"), answers=answers)})[number]
            # stored before it is sent: a server that starts again never uses the number of an exchange twice
            self._state.set_count(client, port.exchange)
            greeting = b"" if peer.contact.ack else terms.encoded
            tag = tag_of(terms.agreement.session, client, peer.last_reply)
            data = Frame(tag, envelope.to_bytes(), greeting).to_bytes()
            self._open[client] = _Open(port, crc32(data))
            return data

    def decode(self, data: bytes, client: str, *, as_update: bool = False) -> dict[str, np.ndarray]:
        """Return the arrays of a client's reply: the trained model, as the server reconstructs it.

        Args:
            data: The reply.
            client: Name of the client.
            as_update: Return the update (trained minus received) instead of the model.

        Returns:
            The arrays by name; empty for a reply that only confirms the request.

        Raises:
            AskAgain: The client lost its state, or does not hold the model that the request builds on.
            WireError: The bytes are damaged, a repetition, late, of another client, or hold invalid numbers; nothing
                has changed.
        """
        with self._lock:
            request, terms, number = self._open.get(check_name(client)), self._terms, number_of(client)
            if request is None or terms is None:
                raise WireError(
                    f"no request to {client} is open: the reply is a repetition, or the server was restarted"
                )
            port, frame = request.port, Frame.from_bytes(data)
            if frame.tag != request.checksum:
                raise WireError(f"the reply does not answer the open request to {client}: it is late, or another's")
            held = from_groups(port.delivered(number), "model", terms.schema)
            messages, refused = port.unpack({number: Envelope.from_bytes(frame.body, terms.schema)})
            contact = port.finish(None).contacts.get(number, Contact())
            is_behind = number in port.behind and number in refused
            if number in port.forgotten or is_behind:
                del self._open[client]
                last_reply = self._peer(client).last_reply if is_behind else 0
                self._state.save(client, _Peer(contact, last_reply, is_behind), terms.schema)
                raise AskAgain(f"{client}: {refused[number]}")
            if number in refused:
                raise WireError(f"{client}: {refused[number]}")
            del self._open[client]
            arrays = _arrays_of(messages[number], held, terms.agreement.layout, as_update=as_update)
            self._state.save(client, _Peer(contact, crc32(data)), terms.schema)
            return arrays

    def close(self) -> None:
        """Release the folder."""
        self._state.close()

    def __enter__(self) -> ServerChannel:
        """Return the channel."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Release the folder."""
        self.close()

    def _restore(self) -> None:
        """Take up the agreement that the folder holds."""
        stored, coding = self._state.fact("agreement"), _text(self._coding)
        if stored is None:
            return
        if self._state.fact("coding") != coding:
            raise ConfigError(
                f"{self._state} was written with the coding {self._state.fact('coding')}, not {coding}; choose another "
                "folder, or delete this one: every client is then sent the whole model once"
            )
        self._set(Agreement.from_bytes(stored.encode()))

    def _agreed(self, arrays: dict[str, np.ndarray]) -> _Terms:
        """Return the terms; the first model decides them."""
        if self._terms is None:
            layout = Layout.of(arrays)
            recipe = self._coding.recipe(layout.schema, shares_initial=self._initial is not None)
            is_exact = isinstance(self._coding, Exact)
            agreement = Agreement(token_hex(8), layout, recipe, is_exact, self._seed)
            self._set(agreement)
            self._state.set_facts(agreement=agreement.to_bytes().decode(), coding=_text(self._coding))
        assert self._terms is not None
        return self._terms

    def _set(self, agreement: Agreement) -> None:
        initial = None if self._initial is None else agreement.layout.model(self._initial)
        links = replace(agreement.links(), initial=initial, max_norm=self._max_norm)
        self._terms = _Terms(agreement, links, agreement.to_bytes())

    def _peer(self, client: str) -> _Peer:
        assert self._terms is not None
        return self._state.load(check_name(client), self._terms.schema, _Peer) or _Peer(Contact())


def number_of(client: str) -> int:
    """Return the number of a client, which selects its random streams; a name of digits is that number."""
    if client.isdecimal() and int(client) < _LARGEST_NUMBER:
        return int(client)
    return crc32(client.encode()) % _LARGEST_NUMBER


def _answers(schema: ModelSchema, *, is_exact: bool) -> tuple[Answer, ...]:
    """Return the replies that a request accepts: an update, one with corrections, or a confirmation."""
    update = {"update": schema.weights, "buffers": schema.buffers, "counters": schema.counters}
    groups = {group: part for group, part in update.items() if len(part)}
    corrected = (Answer("update", {**groups, BITS: schema.weights}),) if is_exact else ()
    return Answer("update", groups), *corrected, Answer(HELD)


def _arrays_of(reply: Message, held: Model, layout: Layout, *, as_update: bool) -> dict[str, np.ndarray]:
    if reply.kind == HELD:
        return {}
    update = from_groups(reply.groups, "update", layout.schema)
    if (correction := reply.groups.get(BITS)) is not None:  # buffers and counters are values, not differences
        model = Model(_corrected(held.weights, update.weights, correction), update.buffers, update.counters)
    elif as_update:
        return layout.to_arrays(Model(to_dense(update.weights), update.buffers, update.counters))
    else:
        model, _ = apply(held, update)
    return layout.to_arrays(difference(model, held) if as_update else model)


def _corrected(held: Tensors, update: Tensors, correction: Tensors) -> Tensors:
    weights = add_bits(add(held, update), correction)
    if not is_finite(weights):
        raise WireError("the corrected weights hold infinite or undefined numbers")
    return weights


def _text(coding: object) -> str:
    return f"{type(coding).__name__} {to_plain(coding)}"
