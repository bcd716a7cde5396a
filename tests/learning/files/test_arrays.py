"""npz files and folders of npy files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.arrays import ArraySource
from fedreuse.learning.files.source import ColumnNames
from tests.learning.files.written import arrays


def test_an_npz_and_a_folder_of_npy_give_the_same(tmp_path: Path) -> None:
    path = arrays(tmp_path / "a.npz", site=np.array(["x", "y"] * 4))
    folder = tmp_path / "folder"
    folder.mkdir()
    with np.load(path) as archive:
        for name in archive.files:
            np.save(folder / f"{name}.npy", archive[name])
    names = ColumnNames(client="site")
    for source in (ArraySource(path, names), ArraySource(folder, names)):
        assert source.form() == ((2,), np.float32)
        facts = source.facts()
        assert facts.labels.codes.tolist() == [0, 1] * 4
        assert facts.clients is not None
        assert facts.clients.values.tolist() == ["x", "y"]
        assert np.concatenate(list(source.chunks())).ravel().tolist() == list(range(16))
    assert isinstance(next(ArraySource(folder).chunks()), np.memmap)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": np.arange(3)}, r"the array 'label' is int64 of shape \(3,\), but there are 8 inputs"),
        ({"inputs": np.arange(8)}, r"the array 'inputs' is int64 of shape \(8,\); inputs are numbers, one row"),
        ({"inputs": np.array([["a"]] * 8)}, r"inputs are numbers"),
        ({"label": np.array([{}] * 8, dtype=object)}, r"'label' cannot be read \(it holds Python objects"),
    ],
)
def test_wrong_arrays(tmp_path: Path, changes: dict[str, np.ndarray], message: str) -> None:
    whole = {"inputs": np.zeros((8, 2)), "label": np.zeros(8, int), **changes}
    np.savez(tmp_path / "a.npz", **whole)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        ArraySource(tmp_path / "a.npz").facts()


def test_absent_arrays_and_files_cut_short(tmp_path: Path) -> None:
    path = arrays(tmp_path / "a.npz")
    with pytest.raises(DataError, match=r"a\.npz: there is no array 'labels' .*; did you mean 'label'\?"):
        ArraySource(path, ColumnNames(label="labels")).facts()
    with pytest.raises(DataError, match="input_columns must name one array here, got a, b"):
        ArraySource(path, ColumnNames(inputs=("a", "b"))).form()
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DataError, match=r"a\.npz: the array '\w+' cannot be read \(not an npz file"):
        ArraySource(path).facts()
