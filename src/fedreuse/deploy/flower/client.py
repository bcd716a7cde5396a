"""Client app of a deployment; Flower starts it for every message, and it forwards the message to `at_node`.

`at_node` runs in the resident worker, or in this process without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flwr.app import Message
from flwr.clientapp import ClientApp

from fedreuse.core.errors import FedreuseError, shortened
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of
from fedreuse.deploy.resident.forwarding import ResidentApp

if TYPE_CHECKING:
    from flwr.app import Context

__all__ = ["answer", "app", "greet"]

app = ClientApp()
_at_node = ResidentApp("fedreuse.deploy.flower.at_node:app")


@app.query()
def greet(message: Message, context: Context) -> Message:
    """Answer a hello with the client and the facts to agree on, or with the reason why this node cannot take part."""
    run = frame_of(message).run
    try:
        return _at_node(message, context)
    except FedreuseError as error:
        return Message(content_of(Frame(run, facts={"refused": shortened(str(error))})), reply_to=message)


@app.train()
def answer(message: Message, context: Context) -> Message:
    """Answer one request."""
    return _at_node(message, context)
