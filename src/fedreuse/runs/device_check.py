"""Comparison of a device with the CPU: the same three rounds on both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.config.run_config import load
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run

if TYPE_CHECKING:
    from fedreuse.store.directory import RunDirectory

__all__ = ["TOLERANCE", "DeviceCheck", "check_device"]

TOLERANCE = 0.1
"""Largest accepted distance, as a share of the distance that training moved the weights. Devices other than the CPU
compute in bfloat16 with 8 significant bits; a CPU that rounds in the same way ends 3.3 % from float32 (tested)."""
_CONFIG: dict[str, Any] = {
    "task": {"name": "digits", "clients": 4, "limit": 400, "partition": "iid", "validation": 0.2},
    "network": {"name": "cnn", "width": 8, "hidden": 32},
    "local": {"epochs": 1, "batch": 32, "optimizer": {"name": "sgd", "lr": 0.05}},
    "method": {"name": "dg_fedreuse", "gate": "always"},
    "rounds": {"count": 3, "cohort": 4, "evaluate_every": 3},
    "executor": "serial",
    "test": "sealed",
    "seed": 11,
}


@dataclass(frozen=True)
class DeviceCheck:
    """Result of a comparison.

    Attributes:
        device: The device that was compared.
        distance: |device weights - CPU weights| / |CPU weights - initial weights|, after three rounds.
        scores: Validation accuracy on the CPU and on the device.
        seconds: Training time on the CPU and on the device.
        tolerance: The largest distance that passes.
    """

    device: str
    distance: float
    scores: tuple[float, float]
    seconds: tuple[float, float]
    tolerance: float = TOLERANCE

    @property
    def is_good(self) -> bool:
        """True if the distance is within the tolerance."""
        return self.distance <= self.tolerance


def check_device(device: str) -> DeviceCheck:
    """Train three rounds of handwritten digits on the CPU and on a device, and compare them.

    Args:
        device: `cpu`, `cuda`, `cuda:1`, `mps`, or another device of torch.

    Raises:
        ConfigError: torch does not know this device, or it is not present.

    Example:
        >>> from fedreuse.runs.device_check import check_device
        >>> check_device("cpu").distance
        0.0
    """
    initial = assemble(load(_CONFIG)).initial.weights.values
    with TemporaryDirectory() as folder:
        there, here = (_train(name, Path(folder) / str(place)) for place, name in enumerate((device, "cpu")))
        weights = [_weights(found) for found in (there, here)]
        distance = float(np.linalg.norm(weights[0] - weights[1]) / np.linalg.norm(weights[1] - initial))
        scores = [float(found.summary["validation_score"]) for found in (here, there)]
        seconds = [float(found.summary["work"]["seconds"]) for found in (here, there)]
    return DeviceCheck(device, distance, (scores[0], scores[1]), (seconds[0], seconds[1]))


def _train(device: str, place: Path) -> RunDirectory:
    return run(load({**_CONFIG, "local": {**_CONFIG["local"], "device": device}}), place)


def _weights(found: RunDirectory) -> np.ndarray:
    arrays, schema = found.model(), assemble(load(_CONFIG)).schema.weights
    return np.concatenate([arrays[spec.name].reshape(-1) for spec in schema])
