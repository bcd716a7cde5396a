"""The client app: the same client function, its memory on the client's own disk."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from flwr.app import Message
from flwr.clientapp import ClientApp

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.client_disk import alone, load, run_folder
from fedreuse.deploy.flower.flat_config import from_flat
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of
from fedreuse.deploy.flower.roster import facts_of
from fedreuse.engine.client_store import DiskStore
from fedreuse.engine.ports import client_answer
from fedreuse.runs.assembly import assemble
from fedreuse.wire.envelope import Envelope

if TYPE_CHECKING:
    from flwr.app import Context

    from fedreuse.runs.config import RunConfig

__all__ = ["answer", "app", "greet"]

_log = logging.getLogger("flwr")
app = ClientApp()


@app.query()
def greet(message: Message, context: Context) -> Message:
    """Hello: who sits here, and what both ends must agree on."""
    client = _Client(context)
    return Message(content_of(client.hello(frame_of(message))), reply_to=message)


@app.train()
def answer(message: Message, context: Context) -> Message:
    """One request, whatever it asks for."""
    client = _Client(context)
    return Message(content_of(client.answer(frame_of(message))), reply_to=message)


class _Client:
    """One client at its node, for one request."""

    def __init__(self, context: Context) -> None:
        self.config, _ = from_flat(context.run_config)
        self.number = _number(context.node_config, self.config)
        self._context = context
        self._federation = assemble(self.config)

    def hello(self, request: Frame) -> Frame:
        examples = int(self._federation.population.examples[self.number])
        return Frame(request.run, self.number, facts_of(self.config.run_id, self._federation.schema, examples))

    def answer(self, frame: Frame) -> Frame:
        schema, method = self._federation.schema, self._federation.method
        request = Envelope.from_bytes(frame.body, schema)
        trainer = self._federation.trainer.for_client(self.number, request.round_number)
        folder = run_folder(self._context, frame.run)
        store = DiskStore(folder, schema)
        with alone(folder / f"client-{self.number}.lock"):
            known = load(store, self.number)
            envelope, record = client_answer(method, request, known, trainer, self.number)
            if record is not known:
                store.save(self.number, record)
        return Frame(frame.run, self.number, {"work": asdict(trainer.work)}, envelope.to_bytes())


def _number(node_config: Mapping[str, Any], config: RunConfig) -> int:
    number = node_config.get("partition-id")
    if not isinstance(number, int) or not 0 <= number < config.task.clients:
        raise ConfigError(
            f"partition-id in the node config must be a client from 0 to {config.task.clients - 1}, got {number!r}; "
            "start the node with --node-config 'partition-id=0'"
        )
    return number
