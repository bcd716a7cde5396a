"""Access to the ratio or byte budget of a codec, also inside wrapping codecs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.compression.codecs.codec import Codec

__all__ = ["ratio_of", "scaled", "with_ratio"]


def ratio_of(codec: Any) -> float | None:
    """Return the share of coordinates that the codec keeps, or None if it has no ratio."""
    while not _has(codec, "ratio") and _has(codec, "codec"):
        codec = codec.codec
    return float(codec.ratio) if _has(codec, "ratio") else None


def with_ratio(codec: Codec, ratio: float) -> Codec:
    """Return the codec with another ratio."""
    inner: Any = codec
    change = {"ratio": ratio} if _has(codec, "ratio") else {"codec": with_ratio(inner.codec, ratio)}
    changed: Codec = replace(inner, **change)
    return changed


def scaled(codec: Codec, factor: float) -> Codec:
    """Return the codec with its byte budget or, without one, its ratio (up to 1) multiplied by a factor."""
    inner: Any = codec
    change: dict[str, Any]
    if _has(codec, "bytes"):
        change = {"bytes": max(1, int(factor * inner.bytes))}
    elif _has(codec, "ratio"):
        change = {"ratio": min(1.0, factor * inner.ratio)}
    else:
        change = {"codec": scaled(inner.codec, factor)}
    changed: Codec = replace(inner, **change)
    return changed


def _has(codec: Any, name: str) -> bool:
    return any(field.name == name for field in fields(codec))
