"""The client at its node: the client function of a simulation, with its state on the client's own disk.

Data and network of a run are prepared at its first message and kept while the process lives.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from flwr.app import Message
from flwr.clientapp import ClientApp

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, DataError, require
from fedreuse.deploy.flower.client_disk import alone, load, number_of, run_folder
from fedreuse.deploy.flower.flat_config import from_flat
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.identity import prove
from fedreuse.deploy.flower.message import content_of, frame_of
from fedreuse.deploy.flower.parts import NodeParts, is_long
from fedreuse.deploy.flower.roster import facts_of
from fedreuse.engine.ports import EVALUATE, WhichModel, client_answer
from fedreuse.engine.state.client_store import DiskStore
from fedreuse.learning.at_home import at_node, is_at_home
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.targets import class_entries
from fedreuse.robustness.poisoning import poisoned
from fedreuse.runs.federation import assemble

if TYPE_CHECKING:
    from flwr.app import Context

    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.schema import ModelSchema
    from fedreuse.learning.data import Split
    from fedreuse.learning.task import PreparedTask

__all__ = ["Client", "answer", "app", "client_of", "greet"]

app = ClientApp()


@app.query()
def greet(message: Message, context: Context) -> Message:
    """Answer a hello: prove the node's key, and report the facts of its client once its number is known."""
    request = frame_of(message)
    number, challenge = number_of(context, request), request.facts.get("challenge")
    key, facts = context.node_config.get("key-path"), dict[str, Any]()
    if key and isinstance(challenge, bytes):
        facts = prove(Path(str(key)), request.run, challenge, context.node_id)
    reply = Frame(request.run) if number is None else client_of(request, context).hello(request)
    return Message(content_of(replace(reply, facts={**facts, **reply.facts})), reply_to=message)


@app.train()
def answer(message: Message, context: Context) -> Message:
    """Answer one request."""
    request = frame_of(message)
    return Message(content_of(client_of(request, context).answer(request)), reply_to=message)


_MOST_KEPT = 2
_kept: dict[tuple[object, ...], Client] = {}


def client_of(request: Frame, context: Context) -> Client:
    """Return this node's client in a run; the last two are kept, with their data and networks."""
    number = number_of(context, request)
    settings = [sorted(config.items()) for config in (context.run_config, context.node_config)]
    key = request.run, number, repr(settings)
    client = _kept.pop(key, None) or Client(context, number)
    _kept[key] = client
    while len(_kept) > _MOST_KEPT:
        del _kept[next(iter(_kept))]
    return client


class Client:
    """Client of one run at its node."""

    def __init__(self, context: Context, number: int | None) -> None:
        self.config, _ = from_flat(context.run_config)
        self.number = _checked(number, self.config)
        self._context = context
        own = self._own_data()
        self._federation = assemble(self.config, None if own is None else poisoned(own, self.config))

    def _own_data(self) -> PreparedTask | None:
        """Return the data at this node; None unless the task is at_home."""
        task, path = self.config.task, str(self._context.node_config.get("data-path", ""))
        if not is_at_home(task.dataset):
            return None
        if not path:
            raise DataError(
                "the task is at_home, but this node has no data: start it with `fedreuse supernode --data FOLDER`"
            )
        return at_node(task, path, self.number, self.config.seed)

    @property
    def schema(self) -> ModelSchema:
        """Schema of the model."""
        return self._federation.schema

    def hello(self, request: Frame) -> Frame:
        """Return the facts that server and client must agree on."""
        federation = self._federation
        examples = int(federation.population.examples[self.number])
        facts = facts_of(self.config.run_id, federation.schema, examples)
        if self._context.node_config.get("tell-classes"):
            data = federation.prepared.data
            _, classes = class_entries(data.train.labels[federation.prepared.training.of(self.number)])
            facts["by_class"] = np.bincount(classes, minlength=data.num_classes).tolist()
        return Frame(request.run, self.number, facts)

    def answer(self, frame: Frame) -> Frame:
        """Answer one request; the client's state is on its disk before the reply is sent."""
        folder = run_folder(self._context, frame.run)
        parts = NodeParts(folder, self.number)
        if "wanted" in frame.facts:
            return Frame(frame.run, self.number, {"from": frame.facts["wanted"][1]}, parts.part(frame))
        if "part" in frame.facts:
            with alone(folder / f"client-{self.number}.lock"):
                return Frame(frame.run, self.number, {"have": parts.add(frame)})
        schema, method = self._federation.schema, self._federation.method
        request = Envelope.from_bytes(parts.take(frame) if "go" in frame.facts else frame.body, schema)
        trainer = self._federation.trainer.for_client(self.number, request.round_number)
        self._set_evaluation_data(request, folder)
        store = DiskStore(folder, schema, frame.run)
        with alone(folder / f"client-{self.number}.lock"):
            known = load(store, self.number)
            envelope, record = client_answer(method, request, known, trainer, self.number)
            if record is not known:
                store.save(self.number, record)
        facts: dict[str, Any] = {"work": asdict(trainer.work)}
        if not is_long(envelope.size()):
            return Frame(frame.run, self.number, facts, envelope.to_bytes())
        return Frame(frame.run, self.number, {**facts, "size": parts.keep(envelope)})

    def _set_evaluation_data(self, request: Envelope, folder: Path) -> None:
        """Set the node's own split for an evaluation (task at_home); its test split opens once per run and model."""
        prepared = self._federation.prepared
        if request.kind != EVALUATE or not is_at_home(self.config.task.dataset):
            return
        if request.values.get("split") == "test":
            which = request.values.get("model")
            require(which in get_args(WhichModel), "evaluate: unknown model", which)
            split = prepared.test.open(folder / f"test-{which}.json", f"round {request.round_number}").split
            self._federation.trainer.deal("test", split, self._all_of(split))
        elif prepared.official_validation is not None:
            split = prepared.official_validation
            self._federation.trainer.deal("validation", split, self._all_of(split))

    def _all_of(self, split: Split) -> ClientIndex:
        return ClientIndex.from_owners(np.full(len(split), self.number), self.config.task.clients)


def _checked(number: object, config: RunConfig) -> int:
    if not isinstance(number, int) or not 0 <= number < config.task.clients:
        raise ConfigError(
            f"partition-id in the node config must be a client from 0 to {config.task.clients - 1}, got {number!r}; "
            "start the node with --node-config 'partition-id=0'"
        )
    return number
