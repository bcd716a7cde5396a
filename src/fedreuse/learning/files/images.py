"""Image files: one image as an array, and a folder of images with one subfolder per class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.source import Coded, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["IMAGES", "ImageFolder", "decode"]

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
"""Suffixes of the files that are read as images."""
_CHUNK = 256  # images are larger than rows of a table, so fewer are held at once


def decode(content: bytes | Path | None, where: str, shape: tuple[int, ...] | None) -> np.ndarray:
    """Decode an image to uint8 (channels, height, width), resized (bilinear) to `shape` if one is given.

    Without a shape the image keeps its size and has one channel if it is grey, else three.

    Raises:
        DataError: There is no image, it cannot be read, or `shape` is not [1 or 3, height, width].
    """
    from PIL import Image, UnidentifiedImageError

    if content is None:
        raise DataError(f"{where}: there is no image; drop the row, or fill it in")
    if shape is not None and (len(shape) != 3 or shape[0] not in (1, 3)):
        raise DataError(f"{where}: task.shape of images is [channels, height, width] with 1 or 3 channels, got {shape}")
    try:
        with Image.open(BytesIO(content) if isinstance(content, bytes) else content) as image:
            is_grey = image.mode in ("1", "L", "I", "I;16", "F") if shape is None else shape[0] == 1
            converted = image.convert("L" if is_grey else "RGB")
            if shape is not None and converted.size != (shape[2], shape[1]):
                converted = converted.resize((shape[2], shape[1]), Image.Resampling.BILINEAR)
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise DataError(f"{where}: not a readable image ({error}); replace or remove it") from None
    pixels = np.asarray(converted)
    return pixels[None] if is_grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))


@dataclass(frozen=True)
class ImageFolder:
    """Images as `folder/<class>/<any name>.png`, in the order of class and name."""

    path: Path
    shape: tuple[int, ...] | None = None

    @property
    def where(self) -> str:
        """The path."""
        return str(self.path)

    def facts(self) -> Facts:
        """Return the names of the subfolders as labels."""
        return Facts(Coded.of(np.array([file.parent.name for file in self._files])))

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return the configured shape, or that of the first image."""
        return self._shape, np.dtype(np.uint8)

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the images, decoded on demand."""
        for start in range(0, len(self._files), _CHUNK):
            yield np.stack([self._read(file) for file in self._files[start : start + _CHUNK]])

    def input_name(self, position: int) -> str:
        """Return the number of the pixel."""
        return f"pixel {position}"

    def _read(self, file: Path) -> np.ndarray:
        image = decode(file, str(file), self.shape)
        if image.shape != self._shape:
            raise DataError(
                f"{file}: the image is {image.shape} (channels, height, width), the first one is {self._shape}; give "
                f"task.shape, for example {list(self._shape)}, and all are resized to it"
            )
        return image

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return self.shape or decode(self._files[0], str(self._files[0]), None).shape

    @cached_property
    def _files(self) -> list[Path]:
        return sorted(file for file in self.path.glob("*/*") if file.suffix.lower() in IMAGES)
