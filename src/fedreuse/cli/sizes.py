"""`fedreuse sizes`: bytes of a network's update with every codec, measured on encoded blocks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json, show_table
from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, require, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.compression.codecs.codec import Codec
    from fedreuse.core.schema import ModelSchema
    from fedreuse.core.tensors import Tensors

__all__ = ["Size", "measure", "sizes_command"]

PAPER = {
    "mnist": "cnn",
    "fashion_mnist": "cnn",
    "emnist_balanced": "cnn",
    "pathmnist": "cnn",
    "cifar10": "resnet18",
    "cifar100": "resnet18",
}
"""Dataset and network of the six rows in the paper's size table."""
_CACHED_CLIENTS = (50, 1000)
"""Numbers of clients in the paper's size table."""
Buffers = Literal["as_weights", "dense"]


@dataclass(frozen=True)
class Size:
    """Sizes of one network on one dataset.

    `upload_bytes` and `saving` are those of Top-K under the first boundary, `codecs` has those of the other codecs.
    `cache_bytes`: the paper's dense update caches at the server, by number of clients that have one.
    """

    dataset: str
    network: str
    parameters: int
    dense_bytes: int
    signature_bytes: int
    upload_bytes: int
    saving: float
    cache_bytes: Mapping[int, int]
    codecs: Mapping[str, Mapping[str, float]]


@app.command("sizes", epilog="Example: fedreuse sizes --dataset cifar10 --network resnet18 --ratio 0.05")
def sizes_command(
    dataset: Annotated[str | None, typer.Option(help="A dataset (default: the paper's six).")] = None,
    network: Annotated[
        str | None, typer.Option(help="A network, or its settings: {name: cnn, norm: group} (default: the paper's).")
    ] = None,
    ratio: Annotated[float, typer.Option(help="The share of coordinates that Top-K keeps.")] = 0.2,
    buffers: Annotated[
        str, typer.Option(help="Encoding of normalisation statistics: as_weights (the paper) or dense.")
    ] = "as_weights",
    as_json: AsJson = False,
) -> None:
    """Show the bytes of a network's update with every codec.

    No data is needed: every codec encodes a random update, and its blocks are measured.
    """
    policy = _policy(buffers)
    require(0 < ratio <= 1, "--ratio must be in (0, 1]", ratio)
    allow(["."])  # the user types the names here; they come from no file
    chosen = list(PAPER) if dataset is None else [dataset]
    rows = [measure(name, network or PAPER.get(name, "cnn"), ratio, policy) for name in chosen]
    if as_json:
        show_json([asdict(row) for row in rows])
    else:
        _show(rows, ratio, policy)


def measure(dataset: str, network: str, ratio: float = 0.2, buffers: Buffers = "as_weights") -> Size:
    """Encode one random update of a network with every codec, and return the field bytes of the blocks.

    Args:
        dataset: Name of a dataset; its shape and number of classes determine the network.
        network: Name of a network, or its settings as a YAML mapping.
        ratio: Share of coordinates that codecs with a ratio keep, in (0, 1].
        buffers: `as_weights` encodes normalisation statistics like weights, `dense` sends them as they are.

    Raises:
        ConfigError: An unknown name, or a dataset of unknown shape.
    """
    from fedreuse.compression.codecs.codec import codecs
    from fedreuse.learning.flat_network import schema_of
    from fedreuse.learning.networks.network import networks

    known = {name: _codec(name, ratio) for name in codecs.names()}
    shape, num_classes = _facts(dataset)
    schema = schema_of(networks.parse(_spec(network), "--network").build(shape, num_classes))
    update = _random_update(schema)
    uploads = {name: _upload_bytes(codec, update, schema, buffers) for name, codec in known.items()}
    savings = {name: 1 - upload / schema.dense_bytes for name, upload in uploads.items()}
    return Size(
        dataset=dataset,
        network=network,
        parameters=schema.weights.size,
        dense_bytes=schema.dense_bytes,
        signature_bytes=schema.weights.subset(schema.head()).dense_bytes,
        upload_bytes=uploads["top_k"],
        saving=savings["top_k"],
        cache_bytes={number: number * schema.dense_bytes for number in _CACHED_CLIENTS},
        codecs={name: {"upload_bytes": uploads[name], "saving": savings[name]} for name in uploads if name != "top_k"},
    )


def _spec(network: str) -> Any:
    """Return a name as it is, a mapping parsed as in a configuration."""
    if not network.startswith("{"):
        return network
    from fedreuse.core.bounded import parse_yaml

    try:
        return parse_yaml(network)
    except ValueError:
        raise ConfigError(f"--network: {network!r} is not a mapping; write it as {{name: cnn, norm: group}}") from None


def _facts(dataset: str) -> tuple[tuple[int, ...], int]:
    """Return the shape of an input and the number of classes, without loading the data."""
    from fedreuse.learning.data import datasets
    from fedreuse.learning.datasets.facts import FACTS

    if dataset in FACTS:
        return FACTS[dataset].shape, FACTS[dataset].num_classes
    source: Any = datasets.parse(dataset, "--dataset")
    shape = getattr(source, "shape", None)
    num_classes = getattr(source, "num_classes", None) or getattr(source, "classes", None)
    if shape is None or num_classes is None:
        raise ConfigError(
            f"--dataset {dataset}: its shape is unknown before it is loaded; give its class the attributes `shape` "
            "and `num_classes`, or name a dataset of the same shape"
        )
    return tuple(shape), int(num_classes)


def _codec(name: str, ratio: float) -> Codec:
    from fedreuse.compression.codecs.codec import codecs

    has_ratio = any(field.name == "ratio" for field in fields(codecs.get(name, "codec")))  # type: ignore[arg-type]  # registered classes are dataclasses
    return codecs.parse({"name": name, "ratio": ratio} if has_ratio else name, "--ratio")


def _random_update(schema: ModelSchema) -> dict[str, Tensors]:
    """Return Gaussian weights and buffers and positive counters: without zeros and ties, as after training."""
    from fedreuse.core.randomness import stream
    from fedreuse.core.tensors import Tensors

    rng = stream(0, "sizes")
    update = {}
    for name, part in {"update": schema.weights, "buffers": schema.buffers, "counters": schema.counters}.items():
        numbers = rng.standard_normal(part.size) if part.dtype.kind == "f" else rng.integers(1, 100, part.size)
        update[name] = Tensors(part, numbers.astype(part.dtype))
    return {name: tensors for name, tensors in update.items() if len(tensors.schema)}


def _upload_bytes(codec: Codec, update: Mapping[str, Tensors], schema: ModelSchema, buffers: Buffers) -> int:
    from fedreuse.compression.codecs.dense import Dense
    from fedreuse.core.randomness import stream

    rng = stream(0, "sizes codec")
    through = {name: codec if name == "update" or buffers == "as_weights" else Dense() for name in update}
    return sum(
        through[name].encode(tensors, schema.of_group(name), rng).field_bytes for name, tensors in update.items()
    )


def _policy(buffers: str) -> Buffers:
    if buffers not in ("as_weights", "dense"):
        raise ConfigError(f"--buffers: '{buffers}' is unknown; {suggest(buffers, ('as_weights', 'dense'))}")
    return "dense" if buffers == "dense" else "as_weights"


def _show(rows: list[Size], ratio: float, buffers: Buffers) -> None:
    from fedreuse.accounting.boundaries.boundary import first
    from fedreuse.report.tables import Table

    upload = (
        f"One upload of one client, buffers {buffers}; saving against the dense update, both under `{first().name}`. "
    )
    caches = tuple(f"cache, {number:,}\nclients, GB" for number in _CACHED_CLIENTS)
    headers = ("dataset", "network", "parameters", "dense\nB", "signature\nB", *caches, f"top_k {ratio:g}\nB", "saving")
    cells = tuple(
        (row.dataset, row.network, f"{row.parameters:,}", f"{row.dense_bytes:,}", f"{row.signature_bytes:,}",
         *(f"{size / 1e9:.4f}" for size in row.cache_bytes.values()), f"{row.upload_bytes:,}", f"{row.saving:.4%}")
        for row in rows
    )  # fmt: skip
    kept = (
        "Signature: state of a DG-FedReuse client. Cache: the paper's, one dense update per client at the server; "
        "fedreuse keeps the update as sent, which is smaller with Top-K (see `fedreuse show`)."
    )
    show_table(Table("Sizes, measured on encoded blocks", headers, cells, upload + kept))
    names = tuple(rows[0].codecs)
    uploads = tuple((name, *(f"{row.codecs[name]['upload_bytes']:,}" for row in rows)) for name in names)
    savings = tuple((name, *(f"{row.codecs[name]['saving']:.2%}" for row in rows)) for name in names)
    columns = ("codec", *(row.dataset for row in rows))
    measured = (
        "Each codec with its defaults, and this ratio where it has one. The update is Gaussian noise: no coordinate "
        "is zero, so `nonzero` saves nothing; savings of entropy codes depend on the update and are only a guide. "
        "`packed` changes the message bytes, not the fields: see `fedreuse lab wire`."
    )
    show_table(Table("The other codecs: upload in B", columns, uploads))
    show_table(Table("The other codecs: saving", columns, savings, measured))
