"""Provenance of a run: code, packages, hardware, command."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import fedreuse
from fedreuse.core.cpu import cpu

__all__ = ["provenance"]

_SECRETS = ("--token",)
"""Options whose values are not stored."""
_PACKAGES = ("numpy", "torch", "pydantic", "msgpack", "safetensors", "pyarrow", "scikit-learn", "scipy")


def provenance() -> dict[str, Any]:
    """Return the facts that bit-identical results depend on, and those that help to explain a difference."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "fedreuse": fedreuse.__version__,
        "code": _code_state(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "platform": platform.platform(),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "torch_threads": 1,
        "command": _command(sys.argv),
    }


def _command(words: Sequence[str]) -> list[str]:
    """Return the command without its folder and without credentials; Flower starts an app with a token."""
    masked = ["***" if before in _SECRETS else word for before, word in pairwise(words)]
    return [Path(words[0]).name, *masked]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


_PACKAGE = Path(__file__).parents[1]


def _code_state(folder: Path = _PACKAGE) -> dict[str, Any]:
    """Return the commit of the package's folder, and whether anything in it differs; None where git cannot tell."""

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD")
    changes = git("status", "--porcelain", "--", str(folder)) if commit else None
    return {"commit": commit, "is_modified": None if changes is None else bool(changes)}
