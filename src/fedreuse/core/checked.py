"""JSON content with an embedded checksum, which detects changes to the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from fedreuse.core.bounded import parse_json

__all__ = ["CHECK", "parse_checked", "with_check"]

CHECK = "check"
"""The key of the checksum."""


def with_check(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with its checksum, which replaces an existing one."""
    rest = _unchecked(content)
    return {**rest, CHECK: _sum(rest)}


def parse_checked(text: str | bytes, is_required: bool = True) -> dict[str, Any]:
    """Parse JSON text and verify its checksum.

    Args:
        text: A JSON mapping.
        is_required: Whether a mapping without a checksum is an error.

    Raises:
        ValueError: If the text is no JSON mapping, or its checksum is absent or wrong.
    """
    content = parse_json(text)
    if not isinstance(content, dict):
        raise ValueError("it holds no mapping")
    if (is_required or CHECK in content) and content.get(CHECK) != _sum(_unchecked(content)):
        raise ValueError("its checksum does not fit")
    return content


def _unchecked(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in content.items() if key != CHECK}


def _sum(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
