"""How much a codec keeps, inside others."""

from __future__ import annotations

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.fit import Fit
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.ratio import ratio_of, scaled, with_ratio
from fedreuse.compression.codecs.top_k import TopK


def test_it_is_found_and_changed_however_deep() -> None:
    nested = Packed(Narrow(TopK(0.05), "int4"), least=0)
    assert ratio_of(nested) == 0.05
    assert with_ratio(nested, 0.2) == Packed(Narrow(TopK(0.2), "int4"), least=0)
    assert ratio_of(Narrow(Dense(), "bf16")) is None


def test_bytes_are_scaled_where_they_are_counted_and_the_ratio_elsewhere() -> None:
    assert scaled(Packed(TopK(0.05)), 2) == Packed(TopK(0.1))
    assert scaled(TopK(0.4), 3) == TopK(1.0)
    assert scaled(Fit(TopK(0.05), bytes=101), 0.5) == Fit(TopK(0.05), bytes=50)
    assert scaled(Fit(TopK(0.05), bytes=1), 0.5) == Fit(TopK(0.05), bytes=1)
