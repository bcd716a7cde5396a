"""The client where it works: the same client function as in a simulation, its memory on the client's own disk.

What a run needs is built at its first message and kept while the process lives.
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
    """Hello: with a key of its own a node proves who it is; one without a number is told whom it plays."""
    request = frame_of(message)
    number, challenge = number_of(context, request), request.facts.get("challenge")
    key, facts = context.node_config.get("key-path"), dict[str, Any]()
    if key and isinstance(challenge, bytes):
        facts = prove(Path(str(key)), request.run, challenge, context.node_id)
    told = Frame(request.run) if number is None else client_of(request, context).hello(request)
    return Message(content_of(replace(told, facts={**facts, **told.facts})), reply_to=message)


@app.train()
def answer(message: Message, context: Context) -> Message:
    """One request, whatever it asks for."""
    request = frame_of(message)
    return Message(content_of(client_of(request, context).answer(request)), reply_to=message)


_MOST_KEPT = 2
_kept: dict[tuple[object, ...], Client] = {}


def client_of(request: Frame, context: Context) -> Client:
    """The client that this node plays in a run; the last two are kept, with their data and networks."""
    number = number_of(context, request)
    told = [sorted(config.items()) for config in (context.run_config, context.node_config)]
    key = request.run, number, repr(told)
    client = _kept.pop(key, None) or Client(context, number)
    _kept[key] = client
    while len(_kept) > _MOST_KEPT:
        del _kept[next(iter(_kept))]
    return client


class Client:
    """One client of one run at its node."""

    def __init__(self, context: Context, number: int | None) -> None:
        self.config, _ = from_flat(context.run_config)
        self.number = _checked(number, self.config)
        self._context = context
        own = self._own_data()
        self._federation = assemble(self.config, None if own is None else poisoned(own, self.config))

    def _own_data(self) -> PreparedTask | None:
        """What lies at this node, if data stay at home."""
        task, path = self.config.task, str(self._context.node_config.get("data-path", ""))
        if not is_at_home(task.dataset):
            return None
        if not path:
            raise DataError(
                "data stay at home, but this node has none: start it with `fedreuse supernode --data FOLDER`"
            )
        return at_node(task, path, self.number, self.config.seed)

    @property
    def schema(self) -> ModelSchema:
        """What its models are made of."""
        return self._federation.schema

    def hello(self, request: Frame) -> Frame:
        """What both ends must agree on."""
        federation = self._federation
        examples = int(federation.population.examples[self.number])
        facts = facts_of(self.config.run_id, federation.schema, examples)
        if self._context.node_config.get("tell-classes"):
            data = federation.prepared.data
            _, classes = class_entries(data.train.labels[federation.prepared.training.of(self.number)])
            facts["by_class"] = np.bincount(classes, minlength=data.num_classes).tolist()
        return Frame(request.run, self.number, facts)

    def answer(self, frame: Frame) -> Frame:
        """One request; what the client remembers is on its disk before the answer leaves."""
        schema, method = self._federation.schema, self._federation.method
        request = Envelope.from_bytes(frame.body, schema)
        trainer = self._federation.trainer.for_client(self.number, request.round_number)
        folder = run_folder(self._context, frame.run)
        self._deal(request, folder)
        store = DiskStore(folder, schema)
        with alone(folder / f"client-{self.number}.lock"):
            known = load(store, self.number)
            envelope, record = client_answer(method, request, known, trainer, self.number)
            if record is not known:
                store.save(self.number, record)
        return Frame(frame.run, self.number, {"work": asdict(trainer.work)}, envelope.to_bytes())

    def _deal(self, request: Envelope, folder: Path) -> None:
        """What a node that keeps its data evaluates on: splits of its own, the test split once per run and model."""
        prepared = self._federation.prepared
        if request.kind != EVALUATE or not is_at_home(self.config.task.dataset):
            return
        if request.values.get("split") == "test":
            which = request.values.get("model")
            require(which in get_args(WhichModel), "evaluate: the model must be one of ours", which)
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
