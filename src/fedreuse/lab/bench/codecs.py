"""Benchmark of every codec on one client's update: encoding and decoding speed on one core, and message size."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from statistics import median
from time import thread_time
from typing import TYPE_CHECKING, Any

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import ConfigError, DataError
from fedreuse.core.method import LinkContext, Scope
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors, sub
from fedreuse.lab.bench.timing import interleave, shown
from fedreuse.lab.bench.workload import configure
from fedreuse.learning.trainer import Trainer, initial_network
from fedreuse.methods.lean import Lean
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fedreuse.compression.codecs.codec import Codec
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.schema import ModelSchema
    from fedreuse.lab.bench.results import Row

__all__ = ["Update", "real_or_generated", "run", "tables"]

_STEPS = {"reference": 21, "resnet18": 6, "tiny": 4}
_MODELLED = "top_k"
"""The codec whose field bytes are the paper's count."""


@dataclass(frozen=True, eq=False)
class Update:
    """An update of one client, the weights it had received, and the origin of both."""

    schema: ModelSchema
    update: Tensors
    received: Tensors
    origin: str


def real_or_generated(config: RunConfig, steps: int) -> Update:
    """Return the update of a client after some training steps; normally distributed numbers if the data are absent."""
    shapes = {"cifar10": (3, 32, 32), "digits": (1, 8, 8)}
    name = config.to_plain()["task"]["name"]
    try:
        prepared = config.task.prepare(config.seed)
    except DataError:
        network = initial_network(config.network, shapes.get(name, (1, 28, 28)), 10, config.seed)
        received = network.read().weights
        noise = stream(config.seed, "bench").standard_normal(received.schema.size, received.values.dtype)
        trained = Tensors(received.schema, received.values + noise * received.values.dtype.type(1e-3))
        return Update(network.schema, sub(trained, received), received, "generated")
    network = initial_network(config.network, prepared.data.shape, prepared.data.num_classes, config.seed)
    indices, objective = (prepared.training, prepared.validation), (config.task.loss, config.task.scoring)
    trainer = Trainer(network, prepared.data, indices, config.local, objective, config.seed)
    client = trainer.for_client(int(prepared.training.sizes.argmax()), 1)
    trained = client.train(trainer.initial, steps=steps).model.weights
    received = trainer.initial.weights
    return Update(network.schema, sub(trained, received), received, f"{steps} steps on {name}")


def run(
    workloads: Sequence[str] = ("reference", "resnet18"), repeats: int = 7, tell: Callable[[str], object] = str
) -> list[Row]:
    """Return one row per codec: processor seconds, one number per pass, and message bytes."""
    rows: list[Row] = []
    for workload in workloads:
        config = configure(workload, 1)
        given = real_or_generated(config, _STEPS[workload])
        known = {name: codecs.parse(spec, "codecs") for name, spec in _specs().items()} | _lean(given.schema)
        tell(f"{config.to_plain()['network']['name']}: {len(known)} codecs, {given.origin}")
        rows += _measured(config.to_plain()["network"]["name"], known, given, repeats)
    return rows


def _specs() -> dict[str, Any]:
    """Return each codec with its defaults; `narrow` also with 4 bits, and `packed` around dense tensors."""
    specs: dict[str, Any] = {name: name for name in codecs.names()}
    if "narrow" in specs:
        specs["int4"] = {"name": "narrow", "values": "int4", "codec": "dense"}
    if "packed" in specs:
        specs["packed dense"] = {"name": "packed", "codec": "dense"}
    return specs


def _lean(schema: ModelSchema) -> dict[str, Codec]:
    """Return the codecs of `lean` at 2 % of the bytes, for the paper's federation; empty if the model is too small."""
    try:
        resolved = Lean(0.02).resolve(Scope(schema, clients=50, cohort=10, rounds=90))
    except ConfigError:
        return {}
    up, down = resolved.uplink["update"], resolved.downlink["model"]
    assert isinstance(up, ErrorFeedback)
    assert isinstance(down, Delta)
    return {"lean 0.02, up": up.codec, "lean 0.02, down": down.codec}


def _measured(network: str, known: Mapping[str, Codec], given: Update, repeats: int) -> list[Row]:
    messages = {name: _envelope(codec, given).to_bytes() for name, codec in known.items()}
    modelled = _envelope(known[_MODELLED], given).field_bytes
    writing = {name: partial(_timed, partial(_write, codec, given)) for name, codec in known.items()}
    reading = {name: partial(_timed, partial(_read, known[name], data, given)) for name, data in messages.items()}
    written, read = interleave(writing, repeats), interleave(reading, repeats)
    return [
        {
            "network": network,
            "codec": name,
            "origin": given.origin,
            "encode_seconds": written[name],
            "decode_seconds": read[name],
            "message_bytes": len(messages[name]),
            "dense_bytes": given.update.nbytes,
            "modelled_bytes": modelled,
        }
        for name in known
    ]


def _timed(work: Callable[[], object]) -> float:
    began = thread_time()  # processor time of this thread: less affected by other processes
    work()
    return thread_time() - began


def _write(codec: Codec, given: Update) -> bytes:
    return _envelope(codec, given).to_bytes()


def _envelope(codec: Codec, given: Update) -> Envelope:
    parcel, _ = Plain(codec).send(given.update, None, _context(given))
    return Envelope("update", 1, 1, parcels={"update": parcel})


def _read(codec: Codec, data: bytes, given: Update) -> Tensors:
    parcel = Envelope.from_bytes(data, given.schema).parcels["update"]
    return Plain(codec).receive(parcel, None, _context(given))[0]


def _context(given: Update) -> LinkContext:
    has_reference = "reference" in {field.name for field in fields(LinkContext)}
    reference: dict[str, Any] = {"reference": given.received} if has_reference else {}
    return LinkContext(given.schema.of_group("update"), 1, 0, stream(0, "bench"), **reference)


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return one table per network with sizes and speeds."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    headers = ("codec", "message B", "of modelled", "encode MB/s", "decode MB/s", "encode ms")
    drawn = []
    for network in networks:
        chosen = [row for row in rows if row["network"] == network]
        legend = (
            f"One update ({chosen[0]['origin']}), whole messages. MB/s: bytes of the dense update per second of one "
            "core. Modelled: the paper's fields of Top-K 0.2."
        )
        without = _without_selection(chosen)
        cells = tuple(map(_cells, chosen)) + ((without,) if without else ())
        drawn.append(Table(f"Codecs on {network}", headers, cells, legend))
    return drawn


def _cells(row: Row) -> tuple[str, ...]:
    size, dense = row["message_bytes"], row["dense_bytes"]
    return (
        row["codec"],
        f"{size:,}",
        f"{size / row['modelled_bytes']:.3f}",
        shown([dense / 1e6 / seconds for seconds in row["encode_seconds"]], 0),
        shown([dense / 1e6 / seconds for seconds in row["decode_seconds"]], 0),
        f"{1e3 * median(row['encode_seconds']):.1f}",
    )


def _without_selection(rows: Sequence[Row]) -> tuple[str, ...] | None:
    """Return the cost of packing without Top-K itself, computed pass by pass; None without `packed`."""
    by_codec = {row["codec"]: row for row in rows}
    if "packed" not in by_codec:
        return None
    pairs = zip(by_codec["packed"]["encode_seconds"], by_codec[_MODELLED]["encode_seconds"], strict=True)
    beyond = [max(packed - plain, 1e-9) for packed, plain in pairs]
    dense = by_codec["packed"]["dense_bytes"]
    speeds = shown([dense / 1e6 / seconds for seconds in beyond], 0)
    return ("packed beyond top_k", "-", "-", speeds, "-", f"{1e3 * median(beyond):.1f}")
