"""Where a run comes from: code, packages, hardware."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import fedreuse
from fedreuse.core.cpu import cpu

__all__ = ["provenance"]

_PACKAGES = ("numpy", "torch", "pydantic", "msgpack", "safetensors", "pyarrow", "scikit-learn", "scipy")


def provenance() -> dict[str, Any]:
    """What must be equal for equal bits, and what helps to find out why they are not."""
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
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _code_state() -> dict[str, Any]:
    folder = Path(__file__).parent

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD")
    return {"commit": commit, "is_modified": bool(git("status", "--porcelain", "--", str(folder))) if commit else None}
