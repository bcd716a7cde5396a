"""From sources to data: in memory, or converted once and mapped."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fedreuse.learning.data import Data, Split
from fedreuse.learning.datasets.folder import data_home
from fedreuse.learning.files import store
from fedreuse.learning.files.build import build
from fedreuse.learning.files.layout import files_below
from fedreuse.learning.files.pool import gather

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fedreuse.learning.files.build import Plan
    from fedreuse.learning.files.layout import Located
    from fedreuse.learning.files.store import Arrays

__all__ = ["load_arrays", "to_data"]


def load_arrays(
    settings: object, path: str, folder: Path | None, plan: Plan, sources: Callable[[], Sequence[Located]]
) -> Arrays:
    """The arrays of what lies at a path; `sources` are opened only if nothing is converted yet.

    `settings` is whatever decides the arrays besides the files: its `repr` is part of the name under which converted
    arrays are kept.
    """
    files = files_below(path)
    place = store.place_for(data_home(folder), settings, files)
    if files and (stored := store.read_stored(place)) is not None:
        return stored
    pool = gather(sources())
    made = partial(build, pool, plan)
    if not files or pool.nbytes <= store.IN_MEMORY:
        return made(store.in_memory)
    return store.convert(place, made)


def to_data(name: str, found: Arrays, **more: Any) -> Data:
    """The dataset of these arrays; `more` are fields of `Data`."""
    arrays = found.arrays
    splits = {
        split: Split(arrays[f"{split}-inputs"], arrays[f"{split}-labels"])
        for split in ("train", "validation", "test")
        if f"{split}-inputs" in arrays
    }
    return Data(
        name=name,
        num_classes=found.facts["num_classes"],
        train=splits["train"],
        test=splits["test"],
        validation=splits.get("validation"),
        clients=arrays.get("clients"),
        held_out_clients={split: arrays[f"{split}-clients"] for split in splits if f"{split}-clients" in arrays},
        client_names=arrays.get("client-names"),
        times=arrays.get("times"),
        copies=arrays.get("copies"),
        notes=tuple(found.facts["notes"]),
        **more,
    )
