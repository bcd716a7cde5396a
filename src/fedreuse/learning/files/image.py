"""One image file as an array of bytes: channels, height, width."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["decode"]


def decode(content: bytes | Path | None, where: str, shape: tuple[int, ...] | None) -> np.ndarray:
    """An encoded image as uint8, resized (bilinear) to `shape` where one is given.

    Without a shape the image keeps its size, with one channel if it is grey and three otherwise.
    """
    from PIL import Image, UnidentifiedImageError

    if content is None:
        raise DataError(f"{where}: there is no image; drop the row, or fill it in")
    if shape is not None and (len(shape) != 3 or shape[0] not in (1, 3)):
        raise DataError(f"{where}: task.shape of images is [channels, height, width] with 1 or 3 channels, got {shape}")
    try:
        with Image.open(BytesIO(content) if isinstance(content, bytes) else content) as image:
            is_grey = image.mode in ("1", "L", "I", "I;16", "F") if shape is None else shape[0] == 1
            whole = image.convert("L" if is_grey else "RGB")
            if shape is not None and whole.size != (shape[2], shape[1]):
                whole = whole.resize((shape[2], shape[1]), Image.Resampling.BILINEAR)
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise DataError(f"{where}: not a readable image ({error}); mend or remove it") from None
    pixels = np.asarray(whole)
    return pixels[None] if is_grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))
