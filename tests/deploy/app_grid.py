"""An existing Flower app and a grid without Flower's processes: its functions answer in this process, byte for byte.

The app learns a federation of quadratics, so that what a strategy makes of it can be compared to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.serverapp import Grid

from fedreuse.deploy.existing_app.array_layout import ArrayLayout, arrays_of
from fedreuse.deploy.existing_app.decorator import fedreuse_train
from fedreuse.testing.quadratic import QuadraticFederation

FIRST_NODE = 1000
Decorate = Callable[[Any], Any]


def record_of(federation: QuadraticFederation) -> ArrayRecord:
    """The initial model as an app hands it over."""
    model = federation.initial
    parts = (model.weights, model.buffers, model.counters)
    return ArrayRecord({spec.name: Array(part[spec.name].copy()) for part in parts for spec in part.schema})


def quadratic_app(federation: QuadraticFederation, decorate: Decorate = fedreuse_train) -> ClientApp:
    """An ordinary app: it takes arrays and a round, trains, and returns arrays and metrics."""
    app = ClientApp()

    @app.train()
    @decorate
    def train(message: Message, context: Context) -> Message:
        received = message.content["arrays"]
        layout = ArrayLayout.of(received)
        trainer = federation.trainer(context.node_config["partition-id"], message.content["config"]["server-round"])
        trained = trainer.train(layout.model(arrays_of(received)))
        metrics = MetricRecord({"num-examples": trained.examples, "steps": trained.steps})
        content = RecordDict({"arrays": layout.record(trained.model), "metrics": metrics})
        return Message(content=content, reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        received = message.content["arrays"]
        trainer = federation.trainer(context.node_config["partition-id"], 0)
        found = trainer.evaluate(ArrayLayout.of(received).model(arrays_of(received)))
        metrics = MetricRecord({"num-examples": found.examples, "loss": found.mean_loss})
        return Message(content=RecordDict({"metrics": metrics}), reply_to=message)

    return app


class AppGrid(Grid):
    """Node 1000 + k has partition id k, and a disk of its own below `folder`."""

    def __init__(self, folder: Path, app: ClientApp, num_nodes: int) -> None:
        self.app = app
        self.folder = folder
        nodes = [FIRST_NODE + (7 * number) % num_nodes for number in range(num_nodes)]  # not in the order of ids
        self.contexts = {node: self._context(node) for node in nodes}
        self.spoil: Callable[[Message, Message], Message | None] = lambda request, reply: reply
        self.crossed: list[tuple[str, str, int]] = []
        self._replies: dict[str, Message] = {}

    def _context(self, node: int) -> Context:
        number = node - FIRST_NODE
        config = {"partition-id": number, "store": str(self.folder / f"node-{number}")}
        return Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any: ...

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> list[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for number, message in enumerate(messages):
            node = message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = f"{message.object_id}-{node}-{number}"
            ids.append(message.metadata.message_id)
            try:
                reply = self.app(self._carried(message, "down"), self.contexts[node])
            except Exception as error:
                reply = Message(Error(0, f"{type(error).__name__}: {error}"), reply_to=message)
            kept = self.spoil(message, reply)
            if kept is not None:
                self._replies[message.metadata.message_id] = self._carried(kept, "up")
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [
            self._replies.pop(message_id) for message_id in reversed(list(message_ids)) if message_id in self._replies
        ]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        return self.pull_messages(self.push_messages(messages))

    def _carried(self, message: Message, way: str) -> Message:
        """The message as it is after its bytes have crossed."""
        if message.has_error():
            return message
        data = recorddict_to_proto(message.content).SerializeToString()
        self.crossed.append((message.metadata.message_type, way, len(data)))
        content = recorddict_from_proto(type(recorddict_to_proto(message.content)).FromString(data))
        return Message(content=content, metadata=message.metadata)
