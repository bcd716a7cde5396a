"""Evaluation of a stored model on the test split once more, to verify a recorded score; nothing is recorded."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.model import Model
from fedreuse.core.tensors import from_arrays
from fedreuse.learning.data import digest_of
from fedreuse.runs.facts import digest_of_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from fedreuse.runs.federation import Federation

__all__ = ["Retest", "retest"]


@dataclass(frozen=True)
class Retest:
    """Score of a model on a test split, and the SHA-256 of its examples."""

    score: float
    digest: str


def retest(federation: Federation, arrays: Mapping[str, np.ndarray]) -> Retest:
    """Evaluate a model given as arrays by name; its evaluation was recorded when the run made it.

    Raises:
        RunDirectoryError: The arrays are not the tensors of the network.
    """
    schema = federation.schema
    try:
        parts = (from_arrays(part, arrays) for part in (schema.weights, schema.buffers, schema.counters))
        model = Model(*parts)
    except (KeyError, ValueError) as error:
        raise RunDirectoryError(f"the stored model does not have the tensors of its network ({error})") from None
    with tempfile.TemporaryDirectory() as folder:
        split = federation.prepared.test.open(Path(folder) / "again.json", digest_of_model(model)).split
    found = federation.config.task.scoring.read(federation.trainer.evaluate(model, split))
    return Retest(found["score"], digest_of(split.inputs, split.labels))
