"""A codec around another one says of itself what the inner one says, wherever that decides what may be done with it."""

from __future__ import annotations

import pytest

from fedreuse.compression.codecs.around import AroundCodec
from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK


@pytest.mark.parametrize("around", [Narrow, Packed])
@pytest.mark.parametrize("inner", [Dense(), TopK(0.1), RandK(0.1), RandK(0.1, unbiased=False)])
def test_it_drops_and_expands_as_the_inner_codec_does(around: type[AroundCodec], inner: Codec) -> None:
    codec = around(inner)
    assert (codec.drops_coordinates, codec.expands) == (inner.drops_coordinates, inner.expands)


def test_without_a_codec_it_keeps_a_fifth() -> None:
    assert Narrow().codec == Packed().codec == TopK(0.2)
