"""Data that stay at home: a schema at the server, what a node may have, and what it may not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.datasets.at_home import AtHome

SCHEMA = AtHome(shape=(1, 4, 4), classes=3, values="pixels", mean=(0.5,), std=(0.25,))


def write(path: Path, count: int = 6, shape: tuple[int, ...] = (1, 4, 4), dtype: str = "uint8", top: int = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    inputs = np.arange(count * int(np.prod(shape))).reshape(count, *shape) % 251
    np.savez(path, inputs=inputs.astype(dtype), label=np.arange(count) % (top + 1))
    return path


def test_the_server_has_a_form_and_no_examples() -> None:
    data = SCHEMA.load(None)
    assert (data.shape, data.num_classes, len(data.test)) == ((1, 4, 4), 3, 0)
    assert not data.train.inputs.any()
    assert data.train.inputs.dtype == np.uint8


def test_the_server_may_have_a_test_set_of_its_own(tmp_path: Path) -> None:
    mine = AtHome(shape=(1, 4, 4), classes=3, values="pixels", test=str(write(tmp_path / "mine.npz")))
    assert len(mine.load(None).test) == 6


def test_a_node_has_all_its_examples_and_splits_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "train.npz")
    data = SCHEMA.read(str(tmp_path))
    assert (len(data.train), len(data.test), data.validation) == (6, 0, None)  # nothing is drawn for testing
    write(tmp_path / "test.npz", 3, dtype="uint8")
    kept = AtHome(shape=(1, 4, 4), classes=3, values="pixels", duplicates="keep")
    assert len(kept.read(str(tmp_path)).test) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shape": (1, 5, 5)}, r"shape \(1, 5, 5\), which is not the size of task.shape \[1, 4, 4\]"),
        ({"top": 3}, r"has the label 3, which is none of the 3 classes"),
        ({"dtype": "float32"}, r"type float32, but task.values is pixels, that is uint8"),
    ],
)
def test_data_of_another_form_are_refused(tmp_path: Path, wrong: dict[str, object], message: str) -> None:
    write(tmp_path / "train.npz", **wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        SCHEMA.read(str(tmp_path))


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        SCHEMA.read(str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="nothing here that can be read"):
        SCHEMA.read(str(tmp_path))


@pytest.mark.parametrize("wrong", [{"shape": ()}, {"classes": 1}, {"std": (0.0,)}, {"classes": ("one",)}])
def test_ranges(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="at_home"):
        AtHome(**{"shape": (1,), "classes": 2, **wrong})  # type: ignore[arg-type]
