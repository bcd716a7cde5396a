"""Probe of one client at a fixed state: repeated scores of the gate, and the harm that reuse would cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedreuse.core.checked import parse_checked
from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.archive import folders_in, opened

__all__ = ["PROBES_FILE", "GateRecord", "Probe", "read_gate", "read_gates"]

PROBES_FILE = "gate.json"
"""File of a gate study's probes."""


@dataclass(frozen=True)
class Probe:
    """Measurements of one client at the start of one round.

    Args:
        round_number: The round that is about to begin.
        client: Id of the client.
        age: Rounds since its cached update was made.
        scores: Its proxy score, repeated with different batches.
        fixed_score: The deterministic proxy over all of its examples, against the same signature.
        threshold: Threshold of the gate in this round.
        drift: Norm of the model's movement since the cached update was made.
        against_update: Cosine distance of the negative gradient of all weights from the cached update.
        chance: A random number, for comparison.
        cosine: Cosine similarity of the cached update and a fresh one, trained now.
        norm_ratio: Norm of the cached update over that of the fresh one.
        harm: Validation loss after a step with the decayed cached update minus that after a step with the fresh update,
            each weighted as in an average cohort.
        relative_drift: The drift over the norm of the cached update.
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
    relative_drift: float

    @property
    def mean_score(self) -> float:
        """Mean score over the repeats."""
        return sum(self.scores) / len(self.scores)

    @property
    def num_fresh(self) -> int:
        """Number of repeats with a score at or above the threshold."""
        return sum(score >= self.threshold for score in self.scores)


@dataclass(frozen=True)
class GateRecord:
    """Stored content of a gate study.

    Attributes:
        probes: One probe per client and round.
        run_id: Id of the probed run.
        config: Resolved configuration of that run.
        provenance: Code, packages and hardware of the study, and its start.
    """

    probes: tuple[Probe, ...]
    run_id: str
    config: Mapping[str, Any]
    provenance: Mapping[str, Any]


def read_gate(folder: Path) -> GateRecord:
    """Read the gate study of a folder and compare its checksum.

    Raises:
        RunDirectoryError: The file is absent or was changed.
    """
    path = folder / PROBES_FILE
    try:
        content = parse_checked(opened(path).read_bytes())
        probes = tuple(Probe(**{**one, "scores": tuple(one["scores"])}) for one in content["probes"])
        return GateRecord(probes, content["run_id"], content["config"], content["provenance"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} is not a gate study, or was changed ({error}); restore it from a copy, or repeat the study with "
            "another --out"
        ) from None


def read_gates(folder: Path) -> list[GateRecord]:
    """Read the gate studies of a folder: its own, or those of the folders in it, such as one per seed; empty if none.

    Raises:
        RunDirectoryError: A file was changed.
    """
    places = [folder] if opened(folder / PROBES_FILE).exists() else folders_in(folder)
    return [read_gate(place) for place in places if opened(place / PROBES_FILE).exists()]
