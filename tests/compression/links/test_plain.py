"""A plain link: what the codec makes of the tensors, and no memory."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, to_dense

SCHEMA = Schema((TensorSpec("a", (4,)),))
CONTEXT = LinkContext(SCHEMA, 1, 0, np.random.default_rng(0))
TENSORS = Tensors(SCHEMA, np.array([1, -4, 2, 3], np.float32))


def test_dense_is_the_default() -> None:
    assert Plain().codec == Dense()
    parcel, state = Plain().send(TENSORS, None, CONTEXT)
    assert state is None
    assert is_equal(Plain().receive(parcel, None, CONTEXT)[0], TENSORS)


def test_what_the_codec_drops_is_gone() -> None:
    link = Plain(TopK(0.5))
    for _ in range(2):  # the second time is as the first
        parcel, state = link.send(TENSORS, None, CONTEXT)
        received, other = link.receive(parcel, None, CONTEXT)
        assert (state, other) == (None, None)
        np.testing.assert_array_equal(to_dense(received).values, [0, -4, 0, 3])
        assert is_equal(link.delivered(parcel, state, CONTEXT), received)


def test_it_is_never_silent() -> None:
    assert not Plain.has_memory
    with pytest.raises(WireError, match="always sends a parcel"):
        Plain().receive(None, None, CONTEXT)
