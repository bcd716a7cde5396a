"""Which CPU this is: equal bits are claimed for equal instruction sets."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["cpu", "usable_cores"]

_TELLING = ("avx", "avx2", "avx512f", "fma", "amx_tile")


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def cpu() -> dict[str, Any]:
    """The model's name, and the instructions that kernels choose by."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return {"model": platform.processor(), "instruction_set": [platform.machine()]}
    lines = [line.partition(":") for line in info.read_text().splitlines() if ":" in line]
    fields = {name.strip(): text.strip() for name, _, text in lines}
    flags = [flag for flag in _TELLING if flag in fields.get("flags", "").split()]
    return {"model": fields.get("model name", platform.processor()), "instruction_set": [platform.machine(), *flags]}
