"""Flower mod at the client: `ClientApp(mods=[compression_mod])`; messages of other strategies pass unchanged."""

from __future__ import annotations

import logging
import zlib
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from flwr.app import ArrayRecord, Context, Message, RecordDict

from fedreuse.compression.links.delta import HELD
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import FedreuseError, RunError, WireError
from fedreuse.core.files import write_whole
from fedreuse.core.model import Model
from fedreuse.core.tensors import to_dense, zeros
from fedreuse.deploy.existing_app.agreement import Agreement
from fedreuse.deploy.existing_app.app_call import AppCall, AppClient, AppError
from fedreuse.deploy.existing_app.app_trainer import OwnTraining
from fedreuse.deploy.existing_app.array_layout import ArrayLayout, arrays_of
from fedreuse.deploy.existing_app.decorator import MISSING, REFUSED, answered
from fedreuse.deploy.existing_app.held_models import HeldModels, digest_of
from fedreuse.deploy.existing_app.joined_evaluation import EVALUATION, JOINS, evaluation_facts
from fedreuse.deploy.existing_app.model_channel import as_first_sent
from fedreuse.deploy.existing_app.small_records import pack_small, unpack_small
from fedreuse.deploy.flower.client_disk import alone, load, run_folder
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of, has_frame, others_of
from fedreuse.deploy.flower.private import calling_app, of_type
from fedreuse.engine.ports import client_answer
from fedreuse.engine.state.client_store import DiskStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fedreuse.core.schema import ModelSchema
    from fedreuse.core.tensors import Tensors

__all__ = ["AGREED", "FOREIGN", "MODEL", "ORDER", "RECORDS", "compression_mod"]

MODEL, RECORDS, AGREED, ORDER, FOREIGN = "model", "records", "agreed", "order", "foreign"
"""Facts of frames: the name of the record with the model, the other records, the length of the agreement that the body
begins with, the order of the returned arrays, the clients whose state a folder holds instead of the node's own."""
_FILE = "agreement.bin"
_log = logging.getLogger("flwr")


def compression_mod(
    message: Message,
    context: Context,
    call_next: Callable[[Message, Context], Message],
    *,
    initial: Callable[[], ArrayRecord] | None = None,
) -> Message:
    """Answer a server app whose strategy is wrapped in `Lean` or `Compressed`, with the unchanged functions of the app.

    Residuals and models are stored on the node's disk: below `store` of the node config, else `FEDREUSE_HOME`, else
    `~/.fedreuse`. Other mods that change arrays, such as clipping, come after this one in the list.

    Args:
        message: The message.
        context: Flower's context.
        call_next: The rest of the client app.
        initial: Makes the arrays that the server app starts from, with the same constructor and seed. If the digests
            agree, they are not sent: `ClientApp(mods=[partial(compression_mod, initial=...)])`.

    Returns:
        The reply. A node that cannot take part replies with the reason, which the server app logs.

    Example:
        >>> from flwr.clientapp import ClientApp
        >>> from fedreuse.deploy import compression_mod
        >>> app = ClientApp(mods=[compression_mod])
    """
    if not has_frame(message):
        return call_next(message, context)
    frame = frame_of(message)
    if MODEL not in frame.facts:  # a request of FedReuseStrategy
        return Message(answered(OwnTraining(call_next), message, context), reply_to=message)
    try:
        content = _answer(frame, message, context, call_next, initial)
    except AppError as error:
        return error.reply
    except FedreuseError as error:
        content = content_of(Frame(frame.run, frame.client, {REFUSED: str(error)}))
    return Message(content, reply_to=message)


def _answer(
    frame: Frame,
    message: Message,
    context: Context,
    call_next: Callable[[Message, Context], Message],
    initial: Callable[[], ArrayRecord] | None,
) -> RecordDict:
    folder = run_folder(context, frame.run)
    agreement, body = _agreement(frame, folder)
    if agreement is None:
        return content_of(Frame(frame.run, frame.client, {MISSING: True}))
    schema, client = agreement.layout.schema, frame.client
    request = Envelope.from_bytes(body, schema)
    records = {**others_of(message), **unpack_small(frame.facts.get(RECORDS))}
    where = client, request.round_number
    app, before = calling_app(), None
    if app is not None and EVALUATION in frame.facts:
        kind, name, packed = frame.facts[EVALUATION]
        asked = of_type(message, str(kind))
        before = AppCall(app, asked, context, agreement, where, str(name), unpack_small(packed))
    call: Any = AppCall(call_next, message, context, agreement, where, str(frame.facts[MODEL]), records, before)
    models, store = HeldModels(folder.parent / ".models", schema), DiskStore(folder, schema, frame.run)
    started = _initial(models, request, agreement, initial)
    method = replace(agreement.recipe.build(), client=AppClient(), initial=started)
    with alone(folder / f"client-{client}.lock"):
        known = load(store, client)
        envelope, record = client_answer(method, request, known, call, client)
        if record is not known:
            store.save(client, record)
            _keep_whole(models, request, schema)
    facts: dict[str, Any] = {MODEL: call.name} if call.name else {}
    if request.ack and request.ack not in known.memories and (foreign := _states_of_others(folder, client)):
        facts[FOREIGN] = foreign
    packed, others = pack_small(call.returned)
    facts |= {RECORDS: packed} if packed else {}
    facts |= {ORDER: tuple(call.order)} if call.order else {}
    facts |= {} if app is None else {JOINS: True}
    if before is not None:
        evaluated, more = evaluation_facts(before)
        facts, others = facts | evaluated, others | more
    content = content_of(Frame(frame.run, client, facts, envelope.to_bytes()))
    content.update(others)
    return content


def _states_of_others(folder: Path, client: int) -> tuple[int, ...]:
    """Return up to eight other clients whose state a folder holds."""
    numbers = (int(path.stem.removeprefix("client-")) for path in sorted(folder.glob("client-*.safetensors")))
    return tuple(islice((number for number in numbers if number != client), 8))


def _agreement(frame: Frame, folder: Path) -> tuple[Agreement | None, bytes]:
    """Return the agreement, from the message or from the disk, and the bytes of the request."""
    length, path = frame.facts.get(AGREED, 0), folder / _FILE
    if not isinstance(length, int) or not 0 <= length <= len(frame.body):
        raise WireError(f"an agreement of {length!r} bytes")
    if length:
        packed = frame.body[:length]
        agreement = Agreement.from_bytes(_inflated(packed))
        write_whole(path, packed, is_private=True)
        return agreement, frame.body[length:]
    return (Agreement.from_bytes(_inflated(path.read_bytes())) if path.exists() else None), frame.body


def _inflated(packed: bytes, most: int = 1 << 26) -> bytes:
    """Return inflated bytes; a server cannot make a client allocate more than 64 MB with a short message."""
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(packed, most)
    except zlib.error as error:
        raise WireError(f"malformed agreement: {error}") from None
    if inflate.unconsumed_tail:
        raise WireError(f"an agreement of more than {most} bytes")
    return data


def _initial(
    models: HeldModels, request: Envelope, agreement: Agreement, make: Callable[[], ArrayRecord] | None
) -> Model | None:
    """Return the model that the server hopes this node has: at first contact, the request names its digest."""
    schema, parcel = agreement.layout.schema, request.parcels.get("model")
    digest = None if parcel is None or request.ack else parcel.notes.get(HELD)
    weights = models.load(digest) if isinstance(digest, int) else None
    if weights is None and isinstance(digest, int) and make is not None:
        weights = _made(make, agreement)
        if digest_of(weights) != digest:
            _log.warning("the initial arrays that this node makes are not those of the server, which sends its own")
            return None
        models.save(weights)
    return None if weights is None else Model(weights, zeros(schema.buffers), zeros(schema.counters))


def _made(make: Callable[[], ArrayRecord], agreement: Agreement) -> Tensors:
    """Return the weights that the node makes itself, rounded as in a first contact."""
    layout, made = agreement.layout, make()
    if (found := ArrayLayout.of(made)).shapes != layout.shapes:
        raise RunError(f"initial: arrays {found.shapes} were made, but the server starts from {layout.shapes}")
    return as_first_sent(agreement.recipe, layout.model(layout.cast(arrays_of(made)))).weights


def _keep_whole(models: HeldModels, request: Envelope, schema: ModelSchema) -> None:
    """Keep a model that was sent whole."""
    parcel = request.parcels.get("model")
    if parcel is not None and HELD not in parcel.notes:
        models.save(to_dense(parcel.decode(schema.weights)))
