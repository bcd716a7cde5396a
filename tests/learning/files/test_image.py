"""One image as an array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedreuse.core.errors import DataError
from fedreuse.learning.files.image import decode


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
