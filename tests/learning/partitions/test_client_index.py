"""A client index: who has what, saved and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.partitions import ClientIndex
from tests.learning.partitions.dealt import lists


def test_index_by_hand() -> None:
    # owners of examples 0..5: client 1 has 0 and 3, client 0 has 1, nobody has 2 and 5, client 3 has 4
    index = ClientIndex.from_owners(np.array([1, 0, -1, 1, 3, -1]), num_clients=4, redraws=2)
    assert index.offsets.tolist() == [0, 1, 3, 3, 4]
    assert index.indices.tolist() == [1, 0, 3, 4]
    assert lists(index) == [[1], [0, 3], [], [4]]
    assert index.sizes.tolist() == [1, 2, 0, 1]
    assert (index.num_clients, index.redraws) == (4, 2)


def test_index_is_a_read_only_view() -> None:
    index = ClientIndex.from_owners(np.array([1, 0, 1]), num_clients=2)
    assert np.shares_memory(index.of(1), index.indices)
    with pytest.raises(ValueError, match="read-only"):
        index.of(1)[0] = 5


@pytest.mark.parametrize("client", [-1, 2])
def test_index_of_a_stranger_is_an_error(client: int) -> None:
    with pytest.raises(IndexError, match=f"client {client} of 2"):
        ClientIndex.from_owners(np.array([1, 0, 1]), num_clients=2).of(client)


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3]])
def test_index_with_wrong_offsets_is_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="rise from 0 to the number of indices, 3"):
        ClientIndex(np.array(offsets, dtype=np.int64), np.arange(3))


def test_index_with_fractions_is_refused() -> None:
    with pytest.raises(ValueError, match="indices must be a list of whole numbers"):
        ClientIndex(np.array([0, 1]), np.array([0.5]))


def test_digest_follows_owners_and_not_the_width_of_the_numbers() -> None:
    base = ClientIndex(np.array([0, 1, 3]), np.array([0, 1, 2]))
    assert base.digest == ClientIndex(np.array([0, 1, 3], dtype=np.int32), np.array([0, 1, 2], dtype=np.int16)).digest
    assert base.digest != ClientIndex(np.array([0, 2, 3]), np.array([0, 1, 2])).digest
    assert base.digest != ClientIndex(np.array([0, 1, 3]), np.array([1, 0, 2])).digest


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    index = ClientIndex.from_owners(np.array([1, 0, -1, 1]), num_clients=3, redraws=4)
    path = tmp_path / "deep" / "partition.npz"
    index.save(path)
    index.save(path)
    loaded = ClientIndex.load(path)
    assert (loaded.digest, loaded.redraws) == (index.digest, 4)
    assert [file.name for file in path.parent.iterdir()] == ["partition.npz"]


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "partition.npz"
    old = ClientIndex.from_owners(np.array([0, 1]), num_clients=2)
    old.save(path)

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        ClientIndex.from_owners(np.array([1, 0]), num_clients=2).save(path)
    assert ClientIndex.load(path).digest == old.digest
    assert [file.name for file in tmp_path.iterdir()] == ["partition.npz"]


def test_files_that_are_no_index_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "foreign.npz", offsets=np.array([0]))
    np.savez(tmp_path / "crooked.npz", offsets=np.array([0, 9]), indices=np.arange(3))
    np.savez(tmp_path / "objects.npz", offsets=np.array([0, 1]), indices=np.array([{}], dtype=object))
    good = ClientIndex.from_owners(np.arange(1000) % 7, num_clients=7)
    good.save(tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "short.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.npz").write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:])
    for name in ("absent", "text", "foreign", "crooked", "objects", "short", "flipped"):
        with pytest.raises(DataError, match=rf"{name}\.npz: not a client index"):
            ClientIndex.load(tmp_path / f"{name}.npz")
