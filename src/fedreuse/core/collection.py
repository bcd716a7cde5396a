"""Garbage collection around long runs."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["long_lived"]


@contextmanager
def long_lived() -> Iterator[None]:
    """Exempt everything that exists now from garbage collection, until the end of the context.

    Modules, data and network outlive a run, and there are hundreds of thousands of such objects. Without this the
    collector visits all of them every few rounds of many small clients, which takes as long as the round itself.
    """
    if gc.get_freeze_count():  # a run inside a run: the outer one ends the exemption
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
