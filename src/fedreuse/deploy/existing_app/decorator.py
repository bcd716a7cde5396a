"""Client side of an existing Flower app: a decorator for its unchanged train function.

    @app.train()
    @fedreuse_train
    def train(message, context): ...

Messages of other strategies reach the function unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, overload

from flwr.app import Context, Message, RecordDict

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import FedreuseError
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.app_trainer import AppTrainer, OwnTraining
from fedreuse.deploy.flower.client_disk import alone, load, run_folder
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of, has_frame, others_of
from fedreuse.engine.ports import client_answer
from fedreuse.engine.state.client_store import DiskStore

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AGREEMENT", "MISSING", "PARTITION", "REFUSED", "Train", "answered", "fedreuse_train"]

AGREEMENT, MISSING, REFUSED, PARTITION = "agreement", "missing", "refused", "partition"
"""Facts of a frame: it holds the agreement; the client lacks it; the client refuses; the node's partition id."""
Train = Callable[[Message, Context], Message]
_FILE = "agreement.json"


@overload
def fedreuse_train(function: Train) -> Train: ...
@overload
def fedreuse_train(
    *, network: Callable[[], Any] | None = None, loss: Callable[[Any, Context], Iterable[Any]] | None = None
) -> Callable[[Train], Train]: ...
def fedreuse_train(
    function: Train | None = None,
    *,
    network: Callable[[], Any] | None = None,
    loss: Callable[[Any, Context], Iterable[Any]] | None = None,
) -> Train | Callable[[Train], Train]:
    """Let a train function answer a `FedReuseStrategy`.

    Args:
        function: The train function of the app, `(message, context) -> message`.
        network: Makes the torch network that the function trains; methods that correct local steps need it.
        loss: `loss(network, context)` yields the loss of each training batch of this client; methods that use gradients
            need it as well.

    Returns:
        The decorated function; with keywords only, a decorator.

    Example:
        >>> from fedreuse.deploy import fedreuse_train
        >>> @fedreuse_train
        ... def train(message, context):
        ...     ...
        >>> train.__name__
        'train'
    """
    if function is None:
        return partial(_decorated, network=network, loss=loss)
    return _decorated(function, network, loss)


def _decorated(function: Train, network: Any = None, loss: Any = None) -> Train:
    own = OwnTraining(function, network, loss)

    @wraps(function)
    def answer(message: Message, context: Context) -> Message:
        if not has_frame(message):
            return function(message, context)
        return Message(answered(own, message, context), reply_to=message)

    return answer


def answered(own: OwnTraining, message: Message, context: Context) -> RecordDict:
    """Answer a frame; errors go to the server as text, which logs them."""
    frame = frame_of(message)
    try:
        folder = run_folder(context, frame.run)
        if AGREEMENT in frame.facts:
            return content_of(Frame(frame.run, frame.client, _agree(own, frame, folder, context)))
        if not (folder / _FILE).exists():
            return content_of(Frame(frame.run, frame.client, {MISSING: True}))
        return _answer_request(own, message, context, folder)
    except FedreuseError as error:
        return content_of(Frame(frame.run, frame.client, {REFUSED: str(error)}))


def _agree(own: OwnTraining, frame: Frame, folder: Path, context: Context) -> dict[str, Any]:
    agreement = Agreement.from_bytes(frame.body)
    own.check(agreement.recipe.name, agreement.recipe.method.needs)
    partial_file = folder / f"{_FILE}.{context.node_id}"  # nodes may share a disk: each writes its own, then renames
    partial_file.write_bytes(frame.body)
    partial_file.replace(folder / _FILE)
    partition = context.node_config.get("partition-id")
    return {PARTITION: partition} if isinstance(partition, int) else {}


def _answer_request(own: OwnTraining, message: Message, context: Context, folder: Path) -> RecordDict:
    """Answer one request with the client function of simulations, on the app's own trainer."""
    frame, agreement = frame_of(message), Agreement.from_bytes((folder / _FILE).read_bytes())
    schema, client = agreement.layout.schema, frame.client
    request = Envelope.from_bytes(frame.body, schema)
    message.content = others_of(message)
    trainer = AppTrainer(own, agreement, message, context, (client, request.round_number))
    store = DiskStore(folder, schema, frame.run)
    with alone(folder / f"client-{client}.lock"):
        known = load(store, client)
        envelope, record = client_answer(agreement.recipe.build(), request, known, trainer, client)
        if record is not known:
            store.save(client, record)
    content = content_of(Frame(frame.run, client, {"work": asdict(trainer.work)}, envelope.to_bytes()))
    content.update(trainer.returned)
    return content
