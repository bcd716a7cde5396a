"""A partition read from a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.partitions.index_file import IndexFile
from tests.learning.partitions.dealt import lists, of, rng


def write(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def test_index_file_from_json_and_npz(tmp_path: Path) -> None:
    wanted = [[5, 1], [0, 2, 3]]
    npz = tmp_path / "clients.npz"
    ClientIndex(np.array([0, 2, 5]), np.array([5, 1, 0, 2, 3]), redraws=3).save(npz)
    for path in (
        write(tmp_path / "list.json", wanted),
        write(tmp_path / "map.json", {"clients": wanted}),
        str(npz),
    ):
        index = IndexFile(path).split(of(np.zeros(6)), 2, rng())
        assert lists(index) == [[1, 5], [0, 2, 3]]  # ascending; example 4 stays unused
    assert index.redraws == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([[0], [1], [2]], r"lists 3 clients, but task\.clients is 2; set task\.clients: 3"),
        ([[0, 1], [6]], "client 1 has example 6, but the training examples are 0 to 5"),
        ([[0, -1], [2]], "client 0 has example -1"),
        ([[0, 3], [2, 3]], "example 3 belongs to client 0 and again to client 1"),
        ([[0, 3, 0], [2]], "example 0 belongs to client 0 and again to client 0"),
        ([[0], []], "client 1 has 0 examples, below min_examples 1; correct the file"),
        ([[0], [1.0]], r"1\.0 is not an example number"),
        ([[0], [True]], "True is not an example number"),
        ([[0], ["1"]], "'1' is not an example number"),
        ([[0], [2**70]], "is not an example number"),
        ([0, 1], "must hold one list of example numbers per client"),
        ({"rows": []}, "must hold one list of example numbers per client"),
        ("x", "must hold one list of example numbers per client"),
    ],
)
def test_wrong_index_files_are_refused(tmp_path: Path, content: object, message: str) -> None:
    path = write(tmp_path / "clients.json", content)
    with pytest.raises(ConfigError, match=rf"^task\.partition\.path: .*clients\.json.*{message}"):
        IndexFile(path).split(of(np.zeros(6)), 2, rng())


@pytest.mark.parametrize("name", ["absent.json", "absent.npz", "broken.json", "broken.npz"])
def test_unreadable_index_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.json").write_text("[[0], [1")
    (tmp_path / "broken.npz").write_text("PK")
    with pytest.raises(ConfigError, match=rf"^task\.partition\.path: .*{name}"):
        IndexFile(str(tmp_path / name)).split(of(np.zeros(6)), 2, rng())
