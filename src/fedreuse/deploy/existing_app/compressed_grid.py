"""Grid that compresses: every message with arrays goes through the links, and its reply is put together again.

A strategy, or any server app, uses it as it uses Flower's own grid. The arrays of a reply are those of the request plus
the decoded update, so that everything a strategy computes from them is computed from decoded updates.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, Error, Message, RecordDict
from flwr.serverapp import Grid

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import NotHeld, RunError, WireError, refusal
from fedreuse.core.model import Model, apply
from fedreuse.core.tensors import pick, to_dense, zeros
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.app_call import SAME, AppClient
from fedreuse.deploy.existing_app.array_layout import ArrayLayout, arrays_of
from fedreuse.deploy.existing_app.decorator import MISSING, REFUSED
from fedreuse.deploy.existing_app.mod import AGREED, MODEL, ORDER, RECORDS
from fedreuse.deploy.existing_app.node_link import NodeLink, is_whole
from fedreuse.deploy.existing_app.run_state import RunState
from fedreuse.deploy.existing_app.small_records import pack_small, unpack_small
from fedreuse.deploy.existing_app.traffic import AGREEMENT, FIRST, Traffic, size_of
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of, has_frame, others_of
from fedreuse.deploy.flower.private import remade

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.config.recipe import Recipe
    from fedreuse.core.message import Message as Answer
    from fedreuse.core.tensors import Tensors
    from fedreuse.engine.state.records import Contact

__all__ = ["CompressedGrid"]

_log = logging.getLogger("flwr")
_POLL_SECONDS = 0.2
_MOST_LAYOUTS = 8
_ERROR = 2  # Flower's code for errors in a client app
_REFUSAL = "refused by fedreuse: "
_HINT = "is its client app made with ClientApp(mods=[compression_mod])?"


@dataclass
class _Channel:
    """Links to all nodes for arrays of one layout."""

    agreement: Agreement
    run: str
    packed: bytes
    nodes: dict[int, NodeLink]
    version: int = 0
    digest: bytes = b""
    model: Model | None = None
    record: ArrayRecord | None = None
    initial: Model | None = None
    state: RunState | None = None

    def write(self, clients: dict[int, int], model: Model | None = None) -> None:
        """Store the run, if it has a folder."""
        if self.state is not None:
            text = self.agreement.to_bytes().decode()
            self.state.write(text, self.run, self.version, clients, model)


@dataclass
class _Sent:
    """A message until its reply arrives."""

    channel: _Channel
    node: int
    name: str
    kind: str
    model: Model
    version: int
    original: Message
    at: float
    retries: int = 0


class CompressedGrid(Grid):
    """Wrapper of a grid.

    Args:
        inner: Flower's grid.
        recipe: Makes method and links for a layout of arrays.
        seed: Seed of random codecs.
        traffic: Counters of bytes.
        folder: Folder for the state of the run; None stores nothing.
    """

    def __init__(
        self,
        inner: Grid,
        recipe: Callable[[ArrayLayout], Recipe],
        seed: int,
        traffic: Traffic,
        folder: Path | None = None,
    ) -> None:
        """Send nothing yet."""
        self._folder = folder
        self._inner, self._recipe, self._seed, self.traffic = inner, recipe, seed, traffic
        self._channels: dict[object, _Channel] = {}
        self._waiting: dict[str, _Sent] = {}
        self._renamed: dict[str, str] = {}
        self._clients: dict[int, int] = {}

    def resume(self, initial: ArrayRecord) -> tuple[ArrayRecord, int]:
        """Prepare the folder, and return the arrays to start from and the number of rounds that are done.

        An unfinished run with the same arrays continues with its agreement and with what its nodes hold.
        """
        if self._folder is None:
            return initial, 0
        layout = ArrayLayout.of(initial)
        state = RunState(self._folder, layout.schema)
        stored = state.read()
        if stored is None:
            self._channels[layout.shapes] = self._new_channel(layout, state)
            return initial, 0
        agreement = Agreement.from_bytes(stored["agreement"].encode())
        channel = self._channels[layout.shapes] = _channel(agreement, stored["run"], state)
        channel.version, self._clients = int(stored["version"]), {int(node): int(k) for node, k in stored["nodes"]}
        model = state.model(channel.version)
        channel.digest = _digest(model)
        for node, number in self._clients.items():
            if (contact := state.contact(number)) is not None:
                channel.nodes[node] = self._link(channel, number, contact)
        _log.info("fedreuse: continuing the unfinished run in %s after %d rounds", self._folder, channel.version - 1)
        return agreement.layout.record(model), channel.version - 1

    def finish(self) -> None:
        """Remove the state of a finished run."""
        for channel in self._channels.values():
            if channel.state is not None:
                channel.state.finish()

    def set_run(self, run: Any) -> None:
        """Set the run of the wrapped grid."""
        self._inner.set_run(run)

    @property
    def run(self) -> Any:
        """Run of the wrapped grid."""
        return self._inner.run

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        """Create a message with the wrapped grid."""
        return self._inner.create_message(*args, **kwargs)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of connected nodes."""
        return self._inner.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        """Return the connected nodes."""
        return self._inner.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages; those with arrays in compressed form."""
        prepared = [self._prepared(message) for message in messages]
        ids = list(self._inner.push_messages([message for message, _ in prepared]))
        for message_id, (_, sent) in zip(ids, prepared, strict=True):
            if message_id and sent is not None:
                self._waiting[message_id] = sent
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Fetch replies and put their arrays together; a node that lacks the reference is sent the model again."""
        asked = {self._renamed.get(message_id, message_id): message_id for message_id in message_ids}
        arrived = []
        for reply in self._inner.pull_messages(list(asked)):
            inner_id = reply.metadata.reply_to_message_id
            sent = self._waiting.pop(inner_id, None)
            if sent is None:
                arrived.append(reply)
                self._count_other(reply)
            elif (content := self._absorbed(reply, sent, asked[inner_id])) is not None:
                arrived.append(remade(reply, content, asked[inner_id]))
        return arrived

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send messages, and return the replies that arrive in time."""
        waiting = {message_id for message_id in self.push_messages(messages) if message_id}
        deadline = None if timeout is None else time.monotonic() + timeout
        replies: list[Message] = []
        while waiting and (deadline is None or time.monotonic() < deadline):
            arrived = list(self.pull_messages(waiting))
            waiting -= {reply.metadata.reply_to_message_id for reply in arrived}
            replies += arrived
            if waiting:
                time.sleep(_POLL_SECONDS)
        refused = [str(reply.error.reason) for reply in replies if reply.has_error()]
        refused = [reason for reason in refused if reason.startswith(_REFUSAL)]
        if refused and len(refused) == len(replies):  # going on would only repeat the failure
            raise RunError(f"every reply was refused; {refused[0].removeprefix(_REFUSAL)}")
        return replies

    def _prepared(self, message: Message) -> tuple[Message, _Sent | None]:
        arrays = {
            name: record for name, record in message.content.items() if isinstance(record, ArrayRecord) and record
        }
        kind = message.metadata.message_type.partition(".")[0]
        self._count_dense(kind, "down", message.content)
        if not arrays:
            self.traffic.sent[kind, "down"] += size_of(message.content)
            self.traffic.down(message.metadata.dst_node_id, message.content, message.content)
            return message, None
        name, record = next(iter(arrays.items()))
        channel, model = self._version(record)
        node = message.metadata.dst_node_id
        sent = _Sent(channel, node, name, kind, model, channel.version, message, time.monotonic())
        link = channel.nodes.get(node)
        if link is None:
            number = self._clients.setdefault(node, len(self._clients))
            link = channel.nodes[node] = self._link(channel, number)
            channel.write(self._clients)
        return self._outgoing(sent, link.request(model, channel.version)), sent

    def _link(self, channel: _Channel, number: int, contact: Contact | None = None) -> NodeLink:
        method = replace(channel.agreement.recipe.build(), client=AppClient(), initial=channel.initial)
        return NodeLink(method, channel.agreement.layout.schema, number, self._seed, contact)

    def _version(self, record: ArrayRecord) -> tuple[_Channel, Model]:
        """Return the channel of a record, at the version that the record is, and its model."""
        for channel in self._channels.values():
            if channel.record is record and channel.model is not None:
                return channel, channel.model
        layout = ArrayLayout.of(record)
        if layout.shapes not in self._channels:
            self._channels[layout.shapes] = self._new_channel(layout)
        channel = self._channels[layout.shapes]
        layout = channel.agreement.layout
        model = layout.model(layout.cast(arrays_of(record)))
        if (digest := _digest(model)) != channel.digest:
            channel.version, channel.digest = channel.version + 1, digest
            channel.write(self._clients, model)
        channel.model, channel.record = model, record
        if channel.initial is None and channel.version == 1:
            channel.initial = _as_first_sent(channel.agreement.recipe, model)
        return channel, model

    def _new_channel(self, layout: ArrayLayout, state: RunState | None = None) -> _Channel:
        if len(self._channels) == _MOST_LAYOUTS:
            raise RunError(
                f"the strategy has sent arrays of {_MOST_LAYOUTS} different layouts, and now of another; a model whose "
                "arrays change from round to round cannot be sent as differences: use the strategy without compression"
            )
        return _channel(Agreement(self._recipe(layout), layout, self._seed), token_hex(8), state)

    def _outgoing(self, sent: _Sent, envelope: Envelope) -> Message:
        link, content = sent.channel.nodes[sent.node], sent.original.content
        packed, others = pack_small({name: record for name, record in content.items() if name != sent.name})
        body, facts = envelope.to_bytes(), dict[str, Any]({MODEL: sent.name, RECORDS: packed})
        if not link.has_agreed:
            body, facts = sent.channel.packed + body, {**facts, AGREED: len(sent.channel.packed)}
            self.traffic.sent[AGREEMENT, "down"] += len(sent.channel.packed)
        made = content_of(Frame(sent.channel.run, link.client, facts, body))
        made.update(others)
        size = size_of(made) - (0 if link.has_agreed else len(sent.channel.packed))
        self.traffic.sent[FIRST if is_whole(envelope) else sent.kind, "down"] += size
        self.traffic.counts["messages"] += 1
        self.traffic.down(sent.node, made, None if sent.retries else content)
        metadata = sent.original.metadata
        return Message(made, sent.node, metadata.message_type, ttl=metadata.ttl, group_id=metadata.group_id)

    def _absorbed(self, reply: Message, sent: _Sent, first_id: str) -> RecordDict | Error | None:
        """Return the content of the reply with its arrays, an error, or None if the request was sent again."""
        link = sent.channel.nodes[sent.node]
        self.traffic.worked(sent.node, time.monotonic() - sent.at)
        try:
            if reply.has_error():
                if link.has_agreed:
                    return reply.error
                raise WireError(f"{reply.error.reason}; {_HINT}")
            frame = self._frame(reply, sent)
            if MISSING in frame.facts:
                link.has_agreed = False
                self._again(sent, first_id, "it lost the agreement")
                return None
            link.has_agreed = True
            self.traffic.sent[sent.kind, "up"] += size_of(reply.content)
            self.traffic.own.reply(reply.content)
            envelope = Envelope.from_bytes(frame.body, sent.channel.agreement.layout.schema)
            try:
                answer = link.reply(envelope, sent.version)
                if sent.channel.state is not None:
                    sent.channel.state.save(link.client, link.contact)
            except NotHeld as reason:
                self._again(sent, first_id, str(reason))
                return None
            content = self._content(reply, frame, answer, sent)
        except Exception as error:  # any error refuses this reply only
            _log.warning("the reply of node %d is refused: %s", sent.node, refusal(error))
            return Error(_ERROR, f"{_REFUSAL}node {sent.node}: {refusal(error)}")
        self._count_dense(sent.kind, "up", content)
        self.traffic.own_dense.reply(content)
        return content

    def _frame(self, reply: Message, sent: _Sent) -> Frame:
        if not has_frame(reply):
            raise WireError(f"it replied without fedreuse; {_HINT}")
        frame = frame_of(reply)
        if REFUSED in frame.facts:
            raise WireError(f"it reports: {frame.facts[REFUSED]}")
        if (frame.run, frame.client) != (sent.channel.run, sent.channel.nodes[sent.node].client):
            raise WireError("its reply belongs to another run or client")
        return frame

    def _again(self, sent: _Sent, first_id: str, reason: str) -> None:
        """Send a request once more: with the agreement, or with the whole model."""
        if sent.retries == 2:
            raise WireError(f"it asked three times for the same request ({reason})")
        link = sent.channel.nodes[sent.node]
        envelope = link.again(sent.model) if link.has_agreed else link.request(sent.model, sent.version)
        sent = replace(sent, retries=sent.retries + 1, at=time.monotonic())
        (message_id,) = self._inner.push_messages([self._outgoing(sent, envelope)])
        if not message_id:
            raise WireError("the request could not be sent again")
        self.traffic.counts["sent again"] += 1
        self._waiting[message_id] = sent
        self._renamed[first_id] = message_id

    def _content(self, reply: Message, frame: Frame, answer: Answer, sent: _Sent) -> RecordDict:
        """Return the records of a reply as the app wrote them, with the decoded model."""
        records = {**unpack_small(frame.facts.get(RECORDS)), **others_of(reply)}
        name = frame.facts.get(MODEL)
        if not isinstance(name, str):
            return RecordDict(records)
        layout = sent.channel.agreement.layout
        model = sent.model if answer.values.get(SAME) else _plus(sent.model, answer.groups)
        arrays = layout.record(model)
        more = records.pop(name, None)
        if isinstance(more, ArrayRecord):
            both = {**arrays, **more}
            order = [str(key) for key in frame.facts.get(ORDER, ())]
            arrays = ArrayRecord({key: both[key] for key in (order if both.keys() == set(order) else both)})
        return RecordDict({name: arrays, **records})

    def _count_other(self, reply: Message) -> None:
        if reply.has_content():
            kind = reply.metadata.message_type.partition(".")[0]
            self._count_dense(kind, "up", reply.content)
            self.traffic.sent[kind, "up"] += size_of(reply.content)
            self.traffic.own.reply(reply.content)
            self.traffic.own_dense.reply(reply.content)

    def _count_dense(self, kind: str, way: Any, content: RecordDict) -> None:
        self.traffic.dense[kind, way] += size_of(content)


def _channel(agreement: Agreement, run: str, state: RunState | None) -> _Channel:
    return _Channel(agreement, run, zlib.compress(agreement.to_bytes(), 9), {}, state=state)


def _digest(model: Model) -> bytes:
    digest = blake2b(digest_size=16)
    for part in (model.weights, model.buffers, model.counters):
        digest.update(np.ascontiguousarray(part.values).data)
    return digest.digest()


def _plus(model: Model, groups: Mapping[str, Tensors]) -> Model:
    """Return the tensors of the model that an answer changed, with the changes added."""
    parts = {"update": model.weights, "buffers": model.buffers, "counters": model.counters}
    before, change = [], []
    for group, part in parts.items():
        tensors = groups.get(group)
        names = [] if tensors is None else [spec.name for spec in tensors.schema]
        before.append(pick(part, names) if names else zeros(part.schema.subset([])))
        change.append(zeros(part.schema.subset([])) if tensors is None else to_dense(tensors))
    return apply(Model(*before), Model(*change))[0]


def _as_first_sent(recipe: Recipe, model: Model) -> Model:
    """Return the model that a first contact delivers."""
    whole = getattr(recipe.downlink.get("model"), "whole", None)
    if whole is None:
        return model
    part = model.weights.schema
    parcel = whole.encode(model.weights, part, np.random.default_rng(0))
    return replace(model, weights=to_dense(parcel.decode(part)))
