"""Freed memory stays with the process: a training step would otherwise fault the same pages in again and again.

A step on the CNN frees some 60 MB of activations. The C library gives such pieces back to the system at once and asks
for them again in the next step, and the system clears every page: six thousand page faults and a sixth of the step.
"""

from __future__ import annotations

import ctypes

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_KEPT_BYTES = 512 << 20
_LARGEST_KEPT_BYTES = 64 << 20  # larger pieces are rare, and go back at once


def keep_freed_memory() -> bool:
    """Ask the C library to keep up to half a gigabyte; False where it cannot be asked (it is not glibc)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES))
