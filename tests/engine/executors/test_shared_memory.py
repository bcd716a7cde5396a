"""Arrays and envelopes in shared memory come back as they were, shared ones once, also in another process."""

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from fedreuse.compression.wire.block import absent_block, dense_block, sparse_block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core import mapped
from fedreuse.engine.executors.shared_memory import (
    Area,
    FilePlace,
    Outbox,
    Pieces,
    Sent,
    attach,
    lay_out_arrays,
    lay_out_envelopes,
    open_arrays,
)


def envelope(exchange: int, parcel: Parcel) -> Envelope:
    return Envelope("train", 3, exchange, 2, 1, True, {"model": parcel, "silent": None}, {"steps": (1, 2)})


def test_arrays_come_back_in_place():
    arrays = {"a": np.arange(5, dtype=np.int64), "b": np.ones((2, 3), np.float32), "empty": np.empty((0, 4), np.uint8)}
    layout, places = lay_out_arrays(arrays)
    area = layout.to_area()
    opened = open_arrays(attach(area), places)
    os.close(area.descriptor)
    for name, array in arrays.items():
        assert opened[name].dtype == array.dtype
        np.testing.assert_array_equal(opened[name], array)


def test_a_parcel_that_two_envelopes_share_is_placed_once():
    blocks = (dense_block(np.arange(100, dtype=np.float32)), absent_block())
    shared = Parcel(blocks, {"bits": 4}, (Parcel((sparse_block(np.array([3]), np.ones(1), 900),)),))
    layout, places = lay_out_envelopes([envelope(7, shared), envelope(8, shared)])
    alone, _ = lay_out_envelopes([envelope(7, shared)])
    assert layout.size == alone.size  # 400 B dense + 4 B index + 8 B value, whether one or two envelopes carry them
    area = layout.to_area()
    for view in (attach(area), layout.to_array()):
        for place, exchange in zip(places, (7, 8), strict=True):
            assert place.open(view).to_bytes() == envelope(exchange, shared).to_bytes()
    os.close(area.descriptor)


def _read(area, places, answer):
    answer.send(float(open_arrays(attach(area), places)["a"].sum()))


@pytest.mark.slow
def test_another_process_sees_the_same_memory():
    context = multiprocessing.get_context("spawn")
    layout, places = lay_out_arrays({"a": np.arange(1000.0)})
    area = layout.to_area()
    here, there = context.Pipe()
    process = context.Process(target=_read, args=(area, places, there))
    process.start()
    assert here.recv() == 499500.0
    process.join()
    os.close(area.descriptor)


def test_what_is_mapped_from_a_file_stays_there(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12.0).reshape(4, 3))
    mapped = np.load(path, mmap_mode="r")
    arrays = {"mapped": mapped, "part": mapped[1:], "plain": np.arange(3), "none": mapped[:0]}
    layout, places = lay_out_arrays(arrays, may_map=True)
    assert [name for name, place in places.items() if isinstance(place, FilePlace)] == ["mapped"]
    assert layout.size < 200  # the part, which may be copied, and the small one
    opened = open_arrays(layout.to_array(), places)
    assert isinstance(opened["mapped"], np.memmap)
    for name, array in arrays.items():
        assert np.array_equal(opened[name], array), name
    copied, everything = lay_out_arrays(arrays)
    assert not any(isinstance(place, FilePlace) for place in everything.values())
    assert copied.size > layout.size


def test_many_bytes_travel_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "_LARGE_BYTES", 8)
    outbox, pieces = Outbox(), [b"abc", np.arange(6, dtype=np.uint8).data]
    assert outbox.put(pieces, may_share=False) == Sent(b"abc\0\1\2\3\4\5")
    assert outbox.put([b"few"], may_share=True).data == b"few"
    sent = outbox.put(pieces, may_share=True)
    assert isinstance(sent.data, Area)
    opened = sent.open()
    outbox.clear()
    assert bytes(opened) == b"abc\0\1\2\3\4\5"
    with pytest.raises(OSError, match="No such file"):
        sent.open()
    layout, places = lay_out_arrays({"a": np.arange(5)})
    area = layout.to_area()  # 64 bytes: a file, too
    assert open_arrays(attach(area), places)["a"].tolist() == [0, 1, 2, 3, 4]
    os.close(area.descriptor)


def test_arrays_of_one_envelope_lie_apart_and_can_be_sent_alone():
    common = dense_block(np.arange(100, dtype=np.float32))
    own = [dense_block(np.full(size, size, np.float64)) for size in (3, 50)]
    envelopes = [envelope(number, Parcel((common, block))) for number, block in enumerate(own)]
    layout, places = lay_out_envelopes(envelopes)
    assert layout.shared == 448  # 400 bytes, in units of 64
    assert [place.own for place in places] == [(448, 512), (512, 960)]  # 24 and 400 bytes
    for place, whole in zip(places, envelopes, strict=True):
        pieces = Pieces({0: layout.to_array(0, layout.shared), place.own[0]: layout.to_array(*place.own)})
        assert place.open(pieces).to_bytes() == whole.to_bytes()
    twice, (first, second) = lay_out_envelopes([envelopes[0], envelopes[0]])
    assert twice.shared == twice.size
    assert first is second
    assert first.own == (512, 512)
    alone, (only,) = lay_out_envelopes([envelopes[1]])
    assert (alone.shared, only.own) == (alone.size, (alone.size, alone.size))
