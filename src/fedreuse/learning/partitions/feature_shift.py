"""Feature shift: clients see rotated or noisy inputs, on top of any other partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.registry import part
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.partition import Partition, partitions

if TYPE_CHECKING:
    from fedreuse.learning.partitions.client_index import ClientIndex

__all__ = ["FeatureShift"]


@partitions.register("feature_shift")
@dataclass(frozen=True)
class FeatureShift(Partition):
    """Feature shift: the inputs of a client are rotated by its own angle, or have noise that grows with its number.

    The noise is that of Li, Diao, Chen and He (Federated Learning on Non-IID Data Silos, ICDE 2022): client i of N adds
    Gaussian noise of variance noise x (i + 1) / N, for uint8 images on pixels in [0, 1] (rounded, clipped to 0..255).
    A client's validation examples are shifted too; the test split is not. The shifted copy of the training inputs is
    held in memory.

    Args:
        partition: Partition that assigns the examples.
        rotations: Angles in degrees, counterclockwise; each client draws one of them. Multiples of 90 move pixels
            without loss (square images), others interpolate linearly.
        noise: Variance of the noise of the last client, at least 0, for inputs in their own unit (pixels in [0, 1]).

    Raises:
        ConfigError: Neither rotations nor noise are set; inputs to rotate are not images; inputs are mapped from disk.

    Example:
        task:
          name: digits
          clients: 20
          partition: {name: feature_shift, partition: iid, rotations: [0, 90, 180, 270]}

    """

    partition: Partition = part(partitions, "iid")
    rotations: tuple[float, ...] = ()
    noise: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.noise >= 0 and np.isfinite(self.noise), "feature_shift.noise must be 0 or more", self.noise)
        require(bool(np.isfinite(self.rotations).all()), "feature_shift.rotations must be finite", self.rotations)
        require(bool(self.rotations) or self.noise > 0, "feature_shift needs rotations, or noise above 0", self.noise)
        require(
            not isinstance(self.partition, FeatureShift), "feature_shift.partition cannot shift too", self.partition
        )

    @property
    def deals_by_class(self) -> bool:
        """True if the inner partition uses the classes."""
        return self.partition.deals_by_class

    @property
    def chooses_examples(self) -> bool:  # type: ignore[override]  # that of the inner partition
        """True if the inner partition selects the examples that are used."""
        return self.partition.chooses_examples

    @property
    def uses_clients(self) -> bool:  # type: ignore[override]  # that of the inner partition
        """True if the inner partition uses the natural clients."""
        return self.partition.uses_clients

    def count_clients(self, examples: Examples) -> int | None:
        """Count the clients as the inner partition does."""
        return self.partition.count_clients(examples)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Assign the examples as the inner partition does."""
        return self.partition.split(examples, num_clients, rng)

    def shift(self, inputs: np.ndarray, index: ClientIndex, rng: np.random.Generator) -> np.ndarray:
        """Return a copy of the inputs with the rotation and noise of each client."""
        self._check_inputs(inputs)
        shifted = np.array(inputs)
        angle_of = rng.integers(len(self.rotations), size=index.num_clients) if self.rotations else None
        for client in range(index.num_clients):
            places = index.of(client)
            if angle_of is not None:
                shifted[places] = _rotated(shifted[places], self.rotations[angle_of[client]])
            if self.noise:
                variance = self.noise * (client + 1) / index.num_clients
                shifted[places] = _noisy(shifted[places], float(np.sqrt(variance)), rng)
        return shifted

    def _check_inputs(self, inputs: np.ndarray) -> None:
        if isinstance(inputs, np.memmap):
            raise ConfigError(
                f"task.partition: feature_shift copies the inputs, but these {inputs.nbytes:,} bytes are too large for "
                "memory and mapped from disk; shift them in the file, or take a smaller one"
            )
        if self.rotations and inputs.ndim != 4:
            raise ConfigError(
                f"task.partition.rotations: only images (channels, height, width) can be rotated, but inputs have "
                f"the shape {inputs.shape[1:]}; drop rotations, or take noise"
            )
        if inputs.dtype.kind not in "fu":
            raise ConfigError(f"task.partition: feature_shift needs pixels or real numbers, got {inputs.dtype}")


def _rotated(images: np.ndarray, angle: float) -> np.ndarray:
    turns, rest = divmod(angle, 90)
    height, width = images.shape[2:]
    if not rest and (height == width or turns % 2 == 0):
        return np.rot90(images, int(turns) % 4, axes=(2, 3))
    from scipy.ndimage import rotate

    turned: np.ndarray = rotate(images, angle, axes=(3, 2), reshape=False, order=1)
    return turned


def _noisy(inputs: np.ndarray, deviation: float, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal(inputs.shape, dtype=np.float32) * np.float32(deviation)
    is_pixels = inputs.dtype == np.uint8
    noisy: np.ndarray = np.clip(np.rint(inputs + 255 * noise), 0, 255) if is_pixels else inputs + noise
    return noisy.astype(inputs.dtype)
