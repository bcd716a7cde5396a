"""Identification of the CPU: bit-identical results are only claimed for equal instruction sets."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["cpu", "usable_cores"]

_RELEVANT_FLAGS = ("avx", "avx2", "avx512f", "fma", "amx_tile")


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0))


def cpu() -> dict[str, Any]:
    """Return the CPU's model name and the instruction sets by which numerical kernels are chosen."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return {"model": platform.processor(), "instruction_set": [platform.machine()]}
    lines = [line.partition(":") for line in info.read_text().splitlines() if ":" in line]
    fields = {name.strip(): text.strip() for name, _, text in lines}
    flags = [flag for flag in _RELEVANT_FLAGS if flag in fields.get("flags", "").split()]
    return {"model": fields.get("model name", platform.processor()), "instruction_set": [platform.machine(), *flags]}
