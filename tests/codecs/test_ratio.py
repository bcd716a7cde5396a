"""The ratio of a codec inside others."""

from __future__ import annotations

from fedreuse.codecs.dense import Dense
from fedreuse.codecs.narrow import Narrow
from fedreuse.codecs.packed import Packed
from fedreuse.codecs.ratio import ratio_of, with_ratio
from fedreuse.codecs.top_k import TopK


def test_it_is_found_and_changed_however_deep() -> None:
    nested = Packed(Narrow(TopK(0.05), "int4"), least=0)
    assert ratio_of(nested) == 0.05
    assert with_ratio(nested, 0.2) == Packed(Narrow(TopK(0.2), "int4"), least=0)
    assert ratio_of(Narrow(Dense(), "bf16")) is None
