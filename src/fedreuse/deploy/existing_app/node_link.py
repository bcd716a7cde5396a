"""The server's end of the links to one node: it knows what the node holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fedreuse.compression.links.delta import HELD
from fedreuse.core.errors import NotHeld, WireError
from fedreuse.core.int_map import IntMap
from fedreuse.core.message import Message
from fedreuse.core.model import Model, to_groups
from fedreuse.deploy.existing_app.app_call import ASK
from fedreuse.engine.ports import ServerPort
from fedreuse.engine.rounds import mark_durable
from fedreuse.engine.state.records import Contact, ServerRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.method import Method
    from fedreuse.core.schema import ModelSchema
    from fedreuse.core.tensors import Tensors

__all__ = ["NodeLink", "is_whole"]


def is_whole(envelope: Envelope) -> bool:
    """Return whether a request carries all weights."""
    parcel = envelope.parcels.get("model")
    return parcel is not None and HELD not in parcel.notes


class NodeLink:
    """Links to one node.

    Args:
        method: Links; `initial` is the model that a node may hold before its first contact.
        schema: Schema of the model.
        client: Number of the node in this run.
        seed: Seed of random codecs.
        contact: State after earlier exchanges; None for a new node.
    """

    def __init__(
        self, method: Method, schema: ModelSchema, client: int, seed: int, contact: Contact | None = None
    ) -> None:
        """Send nothing yet."""
        self._method, self._schema, self.client, self._seed = method, schema, client, seed
        held = {} if contact is None else {client: contact}
        exchange = 0 if contact is None else contact.ack
        self._record = mark_durable(ServerRecord(None, IntMap(held), exchange))
        self._port: ServerPort | None = None
        self._kept_version = 0
        self.has_agreed = contact is not None
        self.joins = False
        """True if the node can evaluate and train in one exchange."""

    @property
    def contact(self) -> Contact:
        """State of the links after the last absorbed reply."""
        return self._record.contacts.get(self.client, Contact())

    def request(self, model: Model, version: int) -> Envelope:
        """Return the request that brings the node a version of the model; empty if it holds that version."""
        if self._port is not None and self._kept_version == version:
            return self._pack({})
        self._port = ServerPort(self._method, self._record, version, self._schema, self._seed)
        initial = self._method.initial
        if not self.contact.ack and initial is not None and version == 1:
            # a question: a node that holds the initial model starts from it, and any other is sent it whole
            return self._pack(to_groups(replace(model, weights=initial.weights), "model"))
        if not self.contact.ack:
            self._port.behind.add(self.client)
        return self._pack(to_groups(model, "model"))

    def again(self, model: Model) -> Envelope:
        """Return the request once more, for a node that lacks what the first one builds on."""
        assert self._port is not None
        self._port.behind.add(self.client)
        return self._pack(to_groups(model, "model"))

    def reply(self, envelope: Envelope, version: int) -> Message:
        """Absorb a reply.

        Raises:
            NotHeld: The node must be sent the model whole; `again` makes the request.
            WireError: The reply is refused; nothing has changed.
        """
        assert self._port is not None
        messages, refused = self._port.unpack({self.client: envelope})
        if self.client in refused:
            if self.client in self._port.forgotten or envelope.kind == "resync":
                self._port.forgotten.discard(self.client)
                raise NotHeld(refused[self.client])
            raise WireError(refused[self.client])
        self._record = mark_durable(self._port.finish(None))
        self._kept_version = version
        return messages[self.client]

    def _pack(self, groups: Mapping[str, Tensors]) -> Envelope:
        assert self._port is not None
        request = Message(ASK, groups, keep=True)
        return self._port.pack({self.client: request})[self.client]
