"""Limit of the memory that compressed data files may need: a small file can unpack to any size."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["ALWAYS_ALLOWED", "VARIABLE", "allowed_bytes", "too_large"]

VARIABLE = "FEDREUSE_MAX_EXPANSION"
"""Environment variable with the largest ratio of unpacked to stored bytes. It is set on the machine, so
that a configuration from elsewhere cannot raise it at a node."""
ALWAYS_ALLOWED = 2**28
"""Unpacked bytes that are always allowed, whatever the ratio."""
_DEFAULT = 100.0


def allowed_bytes(files: Iterable[Path]) -> int:
    """Return the most bytes that some files may unpack to.

    Raises:
        ConfigError: The environment variable is not a positive number.
    """
    text = os.environ.get(VARIABLE, "")
    try:
        ratio = float(text) if text else _DEFAULT
        if not 0 < ratio < 1e9:
            raise ValueError
    except ValueError:
        raise ConfigError(f"{VARIABLE} must be a positive number, such as 1000, got {text!r}") from None
    return max(ALWAYS_ALLOWED, int(ratio * sum(file.stat().st_size for file in files)))


def too_large(where: str, error: Exception) -> DataError:
    """Return the error for files that unpack to more."""
    return DataError(
        f"{where}: {error}, which is the limit for compressed files; if you trust the file, set the environment "
        f"variable {VARIABLE} to the largest ratio of unpacked to stored bytes that you allow (now "
        f"{os.environ.get(VARIABLE) or f'{_DEFAULT:g}'})"
    )
