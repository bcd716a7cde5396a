"""The ratio of a codec, however deep it stands inside others."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.codecs.codec import Codec

__all__ = ["ratio_of", "with_ratio"]


def ratio_of(codec: Any) -> float | None:
    """The share of the coordinates that is kept; None if the codec has no such number."""
    while not _has(codec, "ratio") and _has(codec, "codec"):
        codec = codec.codec
    return float(codec.ratio) if _has(codec, "ratio") else None


def with_ratio(codec: Codec, ratio: float) -> Codec:
    """The same codec with another ratio."""
    inner: Any = codec
    change = {"ratio": ratio} if _has(codec, "ratio") else {"codec": with_ratio(inner.codec, ratio)}
    changed: Codec = replace(inner, **change)
    return changed


def _has(codec: Any, name: str) -> bool:
    return any(field.name == name for field in fields(codec))
