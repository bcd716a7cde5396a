"""Small records inside a frame: they come back with their types, and malformed ones are refused."""

from __future__ import annotations

import msgpack
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from numpy import zeros

from fedreuse.core.errors import WireError
from fedreuse.deploy.existing_app.small_records import pack_small, unpack_small

CONFIG = ConfigRecord({"lr": 0.1, "name": "x", "on": True, "raw": b"\0", "many": [1, 2]})
METRICS = MetricRecord({"loss": 2.5, "num-examples": 7, "curve": [0.5, 0.25]})


def test_there_and_back() -> None:
    arrays = ArrayRecord({"w": Array(zeros(3))})
    packed, others = pack_small({"config": CONFIG, "arrays": arrays, "metrics": METRICS})
    assert others == {"arrays": arrays}
    back = unpack_small(packed)
    assert (back["config"], type(back["config"])) == (CONFIG, ConfigRecord)
    assert (back["metrics"], type(back["metrics"])) == (METRICS, MetricRecord)


def test_large_records_are_left_to_flower() -> None:
    large = ConfigRecord({"text": "x" * 20_000})
    assert pack_small({"config": large}) == (b"", {"config": large})


@pytest.mark.parametrize("packed", [5, b"\xc1", msgpack.packb([["a", "z", {}]]), msgpack.packb([1]), msgpack.packb(3)])
def test_malformed_records_are_refused(packed: object) -> None:
    with pytest.raises(WireError, match="malformed records"):
        unpack_small(packed)


def test_nothing() -> None:
    assert unpack_small(None) == unpack_small(b"") == {}
