"""One image as an array, and images in one folder per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedreuse.core.errors import DataError
from fedreuse.learning.files.images import ImageFolder, decode


def test_grey_colour_and_resized(tmp_path: Path) -> None:
    Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3)).save(tmp_path / "grey.png")
    Image.new("RGB", (3, 2), (1, 2, 3)).save(tmp_path / "colour.png")
    assert decode(tmp_path / "grey.png", "g", None).tolist() == [[[0, 1, 2], [3, 4, 5]]]
    colour = decode(tmp_path / "colour.png", "c", None)
    assert colour.shape == (3, 2, 3)
    assert colour[:, 0, 0].tolist() == [1, 2, 3]
    assert decode(tmp_path / "grey.png", "g", (3, 5, 4)).shape == (3, 5, 4)


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="here: not a readable image"):
        decode(tmp_path / "a.png", "here", None)
    with pytest.raises(DataError, match=r"task\.shape of images is \[channels, height, width\]"):
        decode(b"", "here", (5,))


def draw(path: Path, value: int, size: tuple[int, int] = (4, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, value).save(path)


def test_folders_are_classes(tmp_path: Path) -> None:
    draw(tmp_path / "cat/2.png", 20)
    draw(tmp_path / "ant/1.png", 10)
    (tmp_path / "ant/notes.txt").write_text("no image")
    folder = ImageFolder(tmp_path)
    labels = folder.facts().labels
    assert labels.values[labels.codes].tolist() == ["ant", "cat"]
    assert folder.form() == ((1, 4, 4), np.uint8)
    assert np.concatenate(list(folder.chunks()))[:, 0, 0, 0].tolist() == [10, 20]


def test_sizes_that_differ_need_a_shape(tmp_path: Path) -> None:
    draw(tmp_path / "ant/1.png", 10)
    draw(tmp_path / "ant/2.png", 10, (5, 4))
    with pytest.raises(DataError, match=r"2\.png: the image is \(1, 4, 5\) .* task\.shape, for example \[1, 4, 4\]"):
        list(ImageFolder(tmp_path).chunks())
    assert np.concatenate(list(ImageFolder(tmp_path, (1, 4, 4)).chunks())).shape == (2, 1, 4, 4)
