"""Plain data that carry a checksum of themselves: whoever reads them notices a changed character."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

__all__ = ["CHECK", "parse_checked", "with_check"]

CHECK = "check"
"""The key of the checksum."""


def with_check(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content and its checksum, in the place of one that it has."""
    rest = _unchecked(content)
    return {**rest, CHECK: _sum(rest)}


def parse_checked(text: str | bytes, is_required: bool = True) -> dict[str, Any]:
    """Read JSON text and compare its checksum; a ValueError says what is wrong with it.

    What was written before there were checksums has none, and passes if none is required.
    """
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("it holds no mapping")
    if (is_required or CHECK in content) and content.get(CHECK) != _sum(_unchecked(content)):
        raise ValueError("its checksum does not fit")
    return content


def _unchecked(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in content.items() if key != CHECK}


def _sum(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
