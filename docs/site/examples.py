"""Rename `Example:` in docstrings to `Examples:`, which the docstring parser expects before code."""

from __future__ import annotations

from typing import Any

import griffe

__all__ = ["Examples"]


class Examples(griffe.Extension):
    """Extension that renames the section before a docstring is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section of one module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")
