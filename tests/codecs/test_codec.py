"""Every registered codec: a frozen value that packs tensors, and says what it is."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.codecs.codec import codecs
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, pick

SCHEMA = Schema((TensorSpec("a", (50,)), TensorSpec("b", (3, 3))))
DRAWN = Tensors(SCHEMA, np.random.default_rng(0).normal(size=59).astype(np.float32))
RNG = np.random.default_rng(0)


def test_the_known_ones() -> None:
    assert {"dense", "nonzero", "top_k"} <= set(codecs.names())


@pytest.mark.parametrize("name", ["dense", "nonzero", "top_k"])
def test_a_codec_takes_dense_sparse_and_partial_tensors(name: str) -> None:
    codec = codecs.parse(name, "codec")
    sparse = Tensors(SCHEMA, np.array([2, 3], np.float32), np.array([4, 55], np.int32))
    for tensors in (DRAWN, sparse, pick(DRAWN, ("b",))):
        parcel = codec.encode(tensors, SCHEMA, RNG)
        assert len(parcel.blocks) == 2
        assert parcel.decode(SCHEMA).schema == tensors.schema


def test_a_codec_is_compared_by_its_fields() -> None:
    assert codecs.parse({"name": "top_k", "ratio": 0.5}, "codec") == codecs.parse(
        {"name": "top_k", "ratio": 0.5}, "codec"
    )
    assert is_equal(codecs.parse("dense", "codec").encode(DRAWN, SCHEMA, RNG).decode(SCHEMA), DRAWN)
