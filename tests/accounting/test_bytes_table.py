"""Bytes of every method's uplink for both networks, row by row: real parcels in real envelopes, read off the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import floor, log, log2, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.accounting.boundaries.boundary import boundary_of
from fedreuse.accounting.ledger import Ledger, LedgerRow
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import kept_count
from fedreuse.compression.links.link import parse_link
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.local_trainer import Work
from fedreuse.core.method import LinkContext
from fedreuse.core.model import Model, to_groups
from fedreuse.core.schema import ModelSchema, Schema
from fedreuse.core.tensors import Tensors
from fedreuse.engine.executors.executor import Reply
from fedreuse.learning.flat_network import schema_of
from fedreuse.learning.networks.cnn import Cnn
from fedreuse.learning.networks.resnet18 import ResNet18
from fedreuse.runs.launch import run
from tests.tiny import tiny

DENSE_BYTES = {"cnn": 1_688_120, "resnet18": 44_765_128}


@cache
def network_schema(network: str) -> ModelSchema:
    """The CNN for 28 x 28 images, ResNet-18 for 32 x 32 in colour; ten classes."""
    if network == "cnn":
        return schema_of(Cnn().build((1, 28, 28), 10))
    return schema_of(ResNet18().build((3, 32, 32), 10))


@cache
def update_of(network: str) -> Model:
    schema, rng = network_schema(network), np.random.default_rng(0)

    def draw(part: Schema) -> Tensors:
        return Tensors(part, rng.normal(size=part.size).astype(part.dtype))

    return Model(draw(schema.weights), draw(schema.buffers), draw(schema.counters))


def upload(network: str, link_spec: object, buffers: str) -> LedgerRow:
    """One update through its links, in an envelope, in the ledger."""
    schema = network_schema(network)
    link = parse_link(link_spec, "uplink.update")
    parcels = {}
    for group, tensors in to_groups(update_of(network), "update").items():
        chosen = link if group == "update" or buffers == "as_weights" else Plain(Dense())
        context = LinkContext(schema.of_group(group), 1, 0, np.random.default_rng(1))
        parcels[group], _ = chosen.send(tensors, None, context)
    ledger = Ledger()
    ledger.note({}, [Reply(0, Envelope("update", 1, 1, 1, parcels=parcels), Work())], {})
    return ledger.rows[0]


@dataclass(frozen=True)
class Row:
    """One line of the table: bytes and saving in per cent for the CNN and for ResNet-18."""

    scheme: str
    link: Any
    buffers: str
    cnn: tuple[int, float]
    resnet18: tuple[int, float]


TABLE = [
    Row("dense", "dense", "dense", (1_688_120, 0.0), (44_765_128, 0.0)),
    Row("Topk 0.2 all tensors", {"name": "top_k", "ratio": 0.2}, "as_weights", (390_358, 76.876), (10_351_858, 76.875)),
    Row(
        "Topk 0.2 params, buffers dense",
        {"name": "top_k", "ratio": 0.2},
        "dense",
        (390_958, 76.841),
        (10_381_458, 76.809),
    ),
    Row(
        "Topk 0.115 all tensors",
        {"name": "top_k", "ratio": 0.115},
        "as_weights",
        (246_870, 85.376),
        (6_546_806, 85.375),
    ),
    Row("quant 8 bit", {"name": "qsgd", "bits": 8}, "dense", (425_946, 74.768), (11_307_650, 74.740)),
    Row("quant 4 bit", {"name": "qsgd", "bits": 4}, "dense", (215_029, 87.262), (5_716_829, 87.229)),
    Row("quant 3 bit", {"name": "qsgd", "bits": 3}, "dense", (162_300, 90.386), (4_319_124, 90.352)),
    Row("drive", "drive", "dense", (55_418, 96.717), (1_480_674, 96.692)),
    Row("eden 2 bit", {"name": "eden", "bits": 2}, "dense", (108_272, 93.586), (2_878_484, 93.570)),
    Row("eden 3 bit", {"name": "eden", "bits": 3}, "dense", (161_126, 90.455), (4_276_294, 90.447)),
    Row("eden 4 bit", {"name": "eden", "bits": 4}, "dense", (213_980, 87.324), (5_674_104, 87.325)),
    Row("quant 2 bit", {"name": "qsgd", "bits": 2}, "dense", (109_571, 93.509), (2_921_419, 93.474)),
]


@pytest.mark.slow
@pytest.mark.parametrize("network", DENSE_BYTES)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.scheme)
def test_a_row_of_the_table(row: Row, network: str) -> None:
    wanted, saving = getattr(row, network)
    found = upload(network, row.link, row.buffers)
    charged = boundary_of("update_fields").charge(found)
    assert charged == wanted
    assert found.group_bytes() == charged
    assert found.total_bytes == charged + found.header_bytes
    assert 100 * (1 - charged / DENSE_BYTES[network]) == pytest.approx(saving, abs=0.0006)


def golomb_bytes(schema: Schema, p: float) -> float:
    """The expected length: k (b* + 1 / (1 - (1 - p)^(2^b*)) + 1) bits per tensor, with the k that is really kept."""
    b = 1 + floor(log2(log((sqrt(5) + 1) / 2 - 1) / log(1 - p)))
    per_kept = b + 1 / (1 - (1 - p) ** 2**b) + 1
    return sum(kept_count(spec.size, p) for spec in schema) * per_kept / 8


@pytest.mark.slow
@pytest.mark.parametrize(("network", "about"), [("cnn", 49_500), ("resnet18", 1_310_000)])
def test_the_row_of_stc(network: str, about: int) -> None:
    found = upload(network, {"name": "error_feedback", "codec": {"name": "ternary", "ratio": 0.2}}, "dense")
    used = found.group_bytes("update")
    assert used == pytest.approx(golomb_bytes(network_schema(network).weights, 0.2), rel=0.01)
    assert used == pytest.approx(about, rel=0.01)
    assert 100 * (1 - used / (4 * network_schema(network).weights.size)) == pytest.approx(97.07, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "buffers"), [("cnn", 784), ("resnet18", 38_560)])
def test_dense_buffers(network: str, buffers: int) -> None:
    assert upload(network, "qsgd", "dense").group_bytes("buffers", "counters") == buffers


@pytest.mark.parametrize(("scheme", "wanted"), [("qsgd", 9), ("natural", 9.0), ("rand_k", 6.4)])
def test_bits_per_coordinate_of_the_others(scheme: str, wanted: float) -> None:
    # natural: a sign bit and an exponent byte; rand_k 0.2: a fifth of 32 bits; qsgd, 8 bits, buckets of 32: 8 + 32 / 32
    spec = {"qsgd": {"name": "qsgd", "bits": 8, "bucket": 32}}.get(scheme, scheme)
    bits = 8 * upload("cnn", spec, "dense").group_bytes("update") / network_schema("cnn").weights.size
    assert bits == pytest.approx(wanted, rel=0.002)


def test_the_entropy_coder_keeps_its_budget() -> None:
    # 4 bits per coordinate, with code lengths, segments and ranges
    used = upload("cnn", {"name": "ecuq", "bits": 4.0}, "dense").group_bytes("update")
    assert 8 * used / network_schema("cnn").weights.size < 4.1


@pytest.mark.slow
def test_a_run_of_the_real_network_costs_the_same(tmp_path: Path) -> None:
    task = {"name": "synthetic", "examples": 80, "test_examples": 20, "classes": 10, "shape": [1, 28, 28], "clients": 2}
    config = tiny("rounds.count=1", "rounds.cohort=2", task=task, network={"name": "cnn"}, method={"name": "fedpaq"})
    rows = [row for row in run(config, tmp_path / "run").ledger() if row.direction == "up"]
    assert [boundary_of("update_fields").charge(row) for row in rows] == [215_029, 215_029]
