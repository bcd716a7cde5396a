"""Docstrings say `Example:`; the reader of docstrings wants `Examples:` to know that code follows."""

from __future__ import annotations

from typing import Any

import griffe

__all__ = ["Examples"]


class Examples(griffe.Extension):
    """Renames the section before a docstring is taken apart."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """One module, class, function or attribute that was read."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")
