"""A folder of images: one folder per class, its name the label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.coded import Coded
from fedreuse.learning.files.image import decode
from fedreuse.learning.files.source import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["IMAGES", "ImageFolder"]

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
_CHUNK = 256


@dataclass(frozen=True)
class ImageFolder:
    """`folder/<class>/<any name>.png`; files in the order of class and name."""

    path: Path
    shape: tuple[int, ...] | None = None

    @property
    def where(self) -> str:
        """The path."""
        return str(self.path)

    def facts(self) -> Facts:
        """The names of the folders are the labels."""
        return Facts(Coded.of(np.array([file.parent.name for file in self._files])))

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """The configured shape, or that of the first image."""
        return self._shape, np.dtype(np.uint8)

    def chunks(self) -> Iterator[np.ndarray]:
        """Images, decoded as they are asked for."""
        for start in range(0, len(self._files), _CHUNK):
            yield np.stack([self._read(file) for file in self._files[start : start + _CHUNK]])

    def input_name(self, place: int) -> str:
        """Pixels have no names."""
        return f"pixel {place}"

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
