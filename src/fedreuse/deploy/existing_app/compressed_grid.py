"""Grid that compresses: every message with arrays goes through the links, and its reply is put together again.

A strategy, or any server app, uses it as it uses Flower's own grid. The arrays of a reply are those of the request plus
the decoded update, so that everything a strategy computes from them is computed from decoded updates.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from flwr.app import ArrayRecord, Error, Message, RecordDict
from flwr.serverapp import Grid

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import NotHeld, RunError, WireError, refusal
from fedreuse.core.model import Model
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.app_call import SAME, AppClient
from fedreuse.deploy.existing_app.array_layout import ArrayLayout, arrays_of
from fedreuse.deploy.existing_app.decorator import MISSING, REFUSED
from fedreuse.deploy.existing_app.joined_evaluation import (
    EVALUATION,
    JOINS,
    arrays_in,
    evaluation_of,
    evaluation_request,
)
from fedreuse.deploy.existing_app.mod import AGREED, FOREIGN, MODEL, ORDER, RECORDS
from fedreuse.deploy.existing_app.model_channel import ModelChannel, as_first_sent, model_digest, plus
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
    from fedreuse.engine.state.records import Contact

__all__ = ["CompressedGrid"]

_log = logging.getLogger("flwr")
_POLL_SECONDS = 0.2
_MOST_LAYOUTS = 8
_ERROR = 2  # Flower's code for errors in a client app
_REFUSAL = "refused by fedreuse: "
_HINT = "is its client app made with ClientApp(mods=[compression_mod])?"


@dataclass
class _Sent:
    """A message until its reply arrives."""

    channel: ModelChannel
    node: int
    name: str
    kind: str
    model: Model
    version: int
    original: Message
    at: float
    retries: int = 0
    evaluation: Message | None = None
    """Message whose evaluation this one asks for, too."""


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
        self._channels: dict[object, ModelChannel] = {}
        self._waiting: dict[str, _Sent] = {}
        self._renamed: dict[str, str] = {}
        self._clients: dict[int, int] = {}
        self._to_join: dict[int, Message] = {}
        self._evaluations: list[Message] = []

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
        channel = self._channels[layout.shapes] = ModelChannel.make(agreement, stored["run"], state)
        channel.version, self._clients = int(stored["version"]), {int(node): int(k) for node, k in stored["nodes"]}
        model = state.model(channel.version)
        channel.digest = model_digest(model)
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
                if sent.evaluation is not None and isinstance(content, Error):  # an error of one is an error of both
                    self._evaluations.append(Message(content, reply_to=sent.evaluation))
                arrived.append(remade(reply, content, asked[inner_id]))
        return arrived

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send messages, and return the replies that arrive in time; raise RunError if every one is refused."""
        replies = self.exchange(messages, timeout)
        refused = [str(reply.error.reason) for reply in replies if reply.has_error()]
        refused = [reason for reason in refused if reason.startswith(_REFUSAL)]
        if refused and len(refused) == len(replies):  # going on would only repeat the failure
            raise RunError(f"every reply was refused; {refused[0].removeprefix(_REFUSAL)}")
        return replies

    def exchange(self, messages: Iterable[Message], timeout: float | None = None) -> list[Message]:
        """Send messages, and return the replies that arrive in time, in the order of the messages."""
        order = {message_id: number for number, message_id in enumerate(self.push_messages(messages)) if message_id}
        waiting = set(order)
        deadline = None if timeout is None else time.monotonic() + timeout
        replies: list[Message] = []
        while waiting and (deadline is None or time.monotonic() < deadline):
            arrived = list(self.pull_messages(waiting))
            waiting -= {reply.metadata.reply_to_message_id for reply in arrived}
            replies += arrived
            if waiting:
                time.sleep(_POLL_SECONDS)
        replies.sort(key=lambda reply: order[reply.metadata.reply_to_message_id])  # sums round in one order
        return replies

    def join(self, evaluation: Message, training: Message | None) -> bool:
        """Let a training message ask for an evaluation, too; return False if it cannot, since the model is another."""
        node = evaluation.metadata.dst_node_id
        is_able = any(channel.nodes[node].joins for channel in self._channels.values() if node in channel.nodes)
        if training is None or not is_able:
            return False
        if evaluation_request(evaluation, training) is None:
            return False
        self._to_join[id(training)] = evaluation
        return True

    def take_evaluations(self) -> list[Message]:
        """Return the replies to joined evaluations that have arrived since the last call."""
        taken, self._evaluations = self._evaluations, []
        return taken

    def _prepared(self, message: Message) -> tuple[Message, _Sent | None]:
        arrays, evaluation = arrays_in(message), self._to_join.pop(id(message), None)
        kind = message.metadata.message_type.partition(".")[0]
        self._count_dense(kind, "down", message.content)
        if not arrays:
            self.traffic.sent[kind, "down"] += size_of(message.content)
            self.traffic.down(message.metadata.dst_node_id, message.content, message.content)
            return message, None
        name, record = arrays[0]
        if evaluation is not None:
            self._count_dense("evaluate", "down", evaluation.content)
            self.traffic.own_dense.request(evaluation.content)
            self.traffic.counts["joined"] += 1
        channel, model = self._version(record)
        node = message.metadata.dst_node_id
        at = time.monotonic()
        sent = _Sent(channel, node, name, kind, model, channel.version, message, at, evaluation=evaluation)
        link = channel.nodes.get(node)
        if link is None:
            number = self._clients.setdefault(node, len(self._clients))
            link = channel.nodes[node] = self._link(channel, number)
            channel.write(self._clients)
        return self._outgoing(sent, link.request(model, channel.version)), sent

    def _link(self, channel: ModelChannel, number: int, contact: Contact | None = None) -> NodeLink:
        method = replace(channel.agreement.recipe.build(), client=AppClient(), initial=channel.initial)
        return NodeLink(method, channel.agreement.layout.schema, number, self._seed, contact)

    def _version(self, record: ArrayRecord) -> tuple[ModelChannel, Model]:
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
        if (digest := model_digest(model)) != channel.digest:
            channel.version, channel.digest = channel.version + 1, digest
            channel.write(self._clients, model)
        channel.model, channel.record = model, record
        if channel.initial is None and channel.version == 1:
            channel.initial = as_first_sent(channel.agreement.recipe, model)
        return channel, model

    def _new_channel(self, layout: ArrayLayout, state: RunState | None = None) -> ModelChannel:
        if len(self._channels) == _MOST_LAYOUTS:
            raise RunError(
                f"the strategy has sent arrays of {_MOST_LAYOUTS} different layouts, and now of another; a model whose "
                "arrays change from round to round cannot be sent as differences: use the strategy without compression"
            )
        return ModelChannel.make(Agreement(self._recipe(layout), layout, self._seed), token_hex(8), state)

    def _outgoing(self, sent: _Sent, envelope: Envelope) -> Message:
        link, content = sent.channel.nodes[sent.node], sent.original.content
        packed, others = pack_small({name: record for name, record in content.items() if name != sent.name})
        body, facts = envelope.to_bytes(), dict[str, Any]({MODEL: sent.name, RECORDS: packed})
        if sent.evaluation is not None:
            facts[EVALUATION] = evaluation_request(sent.evaluation, sent.original)
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
            link.has_agreed, link.joins = True, frame.facts.get(JOINS) is True
            self.traffic.sent[sent.kind, "up"] += size_of(reply.content)
            self.traffic.own.reply(reply.content)
            envelope = Envelope.from_bytes(frame.body, sent.channel.agreement.layout.schema)
            try:
                answer = link.reply(envelope, sent.version)
                if sent.channel.state is not None:
                    sent.channel.state.save(link.client, link.contact)
            except NotHeld as reason:
                if link.contact.ack:
                    _log.warning("fedreuse: node %d is sent the model again: %s", sent.node, _lost(frame, reason))
                self._again(sent, first_id, str(reason))
                return None
            others = others_of(reply)
            evaluated = self._evaluated(frame, others, sent)
            content = self._content(others, frame, answer, sent)
        except Exception as error:  # any error refuses this reply only
            _log.warning("the reply of node %d is refused: %s", sent.node, refusal(error))
            return Error(_ERROR, f"{_REFUSAL}node {sent.node}: {refusal(error)}")
        if evaluated is not None:
            self._evaluations.append(evaluated)
        for kind, made in ((sent.kind, content), *([("evaluate", evaluated.content)] if evaluated else ())):
            self._count_dense(kind, "up", made)
            self.traffic.own_dense.reply(made)
        return content

    def _evaluated(self, frame: Frame, others: RecordDict, sent: _Sent) -> Message | None:
        """Return the reply to a joined evaluation, and take its records out of the others."""
        if sent.evaluation is None:
            return None
        if EVALUATION not in frame.facts:
            raise WireError("its reply lacks the evaluation")
        content = evaluation_of(frame.facts, others, sent.channel.agreement.layout.record(sent.model))
        return Message(content, reply_to=sent.evaluation)

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

    def _content(self, others: RecordDict, frame: Frame, answer: Answer, sent: _Sent) -> RecordDict:
        """Return the records of a reply as the app wrote them, with the decoded model."""
        records = {**unpack_small(frame.facts.get(RECORDS)), **others}
        name = frame.facts.get(MODEL)
        if not isinstance(name, str):
            return RecordDict(records)
        layout = sent.channel.agreement.layout
        model = sent.model if answer.values.get(SAME) else plus(sent.model, answer.groups)
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


def _lost(frame: Frame, reason: NotHeld) -> str:
    """Return why a node does not hold what it held."""
    if FOREIGN not in frame.facts:
        return str(reason)
    return (
        f"its folder holds the state of client {frame.facts[FOREIGN]} instead of its own, {frame.client}; if it "
        "was copied from another node, give every node one of its own (`store` in the node config)"
    )
