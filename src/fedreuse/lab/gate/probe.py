"""One client at a fixed state: what the gate's score says again and again, and what reuse would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

from fedreuse.core.checked import CHECK, parse_checked
from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.archive import folders_in, opened

__all__ = ["PROBES_FILE", "GateRecord", "Probe", "read_gate", "read_gates"]

PROBES_FILE = "gate.json"
"""Where a gate study keeps its probes."""


@dataclass(frozen=True)
class Probe:
    """One client at the start of one round.

    Args:
        round_number: The round that is about to begin.
        client: Who.
        age: Rounds since its cached update was made.
        scores: Its proxy score, taken again with other batches.
        fixed_score: The deterministic proxy over all of its examples, against the same signature.
        threshold: The gate's, in this round.
        drift: Norm of the model's movement since the cached update was made.
        against_update: Distance of the direction downhill (minus the gradient of all weights) from the cached update.
        chance: A random number, for comparison.
        cosine: Of the cached update and a fresh one, trained now.
        norm_ratio: Norm of the cached update over that of the fresh one.
        harm: By how much the validation loss is higher after a step with the decayed cache than with the fresh update,
            each weighted as in an average cohort.
        relative_drift: The drift over the norm of the cached update; not a number in files from before it was measured.
    """

    round_number: int
    client: int
    age: int
    scores: tuple[float, ...]
    fixed_score: float
    threshold: float
    drift: float
    against_update: float
    chance: float
    cosine: float
    norm_ratio: float
    harm: float
    relative_drift: float = nan

    @property
    def mean_score(self) -> float:
        """Over the repeats."""
        return sum(self.scores) / len(self.scores)

    @property
    def num_fresh(self) -> int:
        """In how many repeats the threshold says: train."""
        return sum(score >= self.threshold for score in self.scores)


@dataclass(frozen=True)
class GateRecord:
    """What a gate study left in a folder.

    Attributes:
        probes: Every client that was looked at.
        run_id: Of the run that was looked at.
        config: Of that run, resolved.
        provenance: Code, packages and hardware of the study, and when it started.
        is_checked: Whether the file has a checksum; one from before there were any is unverified.
    """

    probes: tuple[Probe, ...]
    run_id: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    is_checked: bool = False


def read_gate(folder: Path) -> GateRecord:
    """What a gate study left in a folder, compared with its checksum if it has one.

    Raises:
        RunDirectoryError: The file is not whole, or not as it was written.
    """
    path = folder / PROBES_FILE
    try:
        content = parse_checked(opened(path).read_bytes(), is_required=False)
        if ("provenance" in content) != (CHECK in content):  # they came together; older files have neither
            raise ValueError("its checksum or its provenance is missing")
        probes = tuple(Probe(**{**one, "scores": tuple(one["scores"])}) for one in content["probes"])
        rest = {key: content[key] for key in ("run_id", "config", "provenance") if key in content}
        return GateRecord(probes, **rest, is_checked=CHECK in content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} is not a gate study as it was written ({error}); bring it back from a copy, or look again with "
            "--out and another folder"
        ) from None


def read_gates(folder: Path) -> list[GateRecord]:
    """The gate studies of a folder: its own, or those of the folders in it (of several seeds, say); empty if none.

    Raises:
        RunDirectoryError: A file is not whole, or not as it was written.
    """
    places = [folder] if opened(folder / PROBES_FILE).exists() else folders_in(folder)
    return [read_gate(place) for place in places if opened(place / PROBES_FILE).exists()]
