"""Natural clients: every example stays with the user, device or site that it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedreuse.core.errors import ConfigError, and_others, require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, partitions

__all__ = ["Natural"]


@partitions.register("natural")
@dataclass(frozen=True)
class Natural(Partition):
    """Natural clients: every example stays with the user, device or site that the data name.

    It is the partition of data with `task.client_column`, unless another one is named. `task.clients` is then the
    number of clients that are kept; if it is given it must be that number, which the error message names.

    Args:
        min_examples: Smallest number of examples of a client, at least 1. With one example a client cannot train,
            because batches have at least two.
        min_classes: Smallest number of different labels of a client, at least 1.
        on_small: Treatment of clients below one of these bounds: `refuse` raises an error that names the first one,
            `drop` leaves all such clients out.

    Raises:
        ConfigError: The data name no clients, their number is not `task.clients`, or one of them is too small.

    Example:
        task: {name: files, path: visits.parquet, client_column: hospital,
               partition: {name: natural, min_examples: 20, on_small: drop}}

    """

    min_examples: int = 2
    min_classes: int = 1
    on_small: Literal["refuse", "drop"] = "refuse"

    chooses_examples = True
    uses_clients = True

    @property
    def deals_by_class(self) -> bool:
        """True if the classes of a client are counted."""
        return self.min_classes > 1

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.min_examples >= 1, "natural.min_examples must be at least 1", self.min_examples)
        require(self.min_classes >= 1, "natural.min_classes must be at least 1", self.min_classes)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Group the examples by client."""
        del rng  # nothing is drawn
        is_kept = self._kept(examples)
        if (num_kept := int(np.count_nonzero(is_kept))) != num_clients:
            left_out = "" if is_kept.all() else f" ({np.count_nonzero(~is_kept)} smaller ones left out)"
            raise ConfigError(
                f"task.partition: there are {num_kept} natural clients{left_out}, but task.clients is {num_clients}; "
                f"set task.clients: {num_kept}"
            )
        number_of = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
        assert examples.clients is not None  # `_kept` requires them
        return ClientIndex.from_owners(number_of[examples.clients], num_clients)

    def count_clients(self, examples: Examples) -> int:
        """Return the number of clients that take part.

        Raises:
            ConfigError: The data name no clients, or one of them is too small.
        """
        return int(np.count_nonzero(self._kept(examples)))

    def _kept(self, examples: Examples) -> np.ndarray:
        """Return whether each client of the data takes part."""
        if examples.clients is None:
            raise ConfigError(
                "task.partition is natural, but this dataset does not say which client an example belongs to; name the "
                "column that does (task.client_column, dataset `files`), or take another partition, such as dirichlet"
            )
        sizes = np.bincount(examples.clients)
        is_kept: np.ndarray = sizes >= self.min_examples
        self._check(examples, is_kept, sizes, "examples", "min_examples")
        if self.min_classes > 1:
            classes = _classes_of(examples)
            has_enough = classes >= self.min_classes
            self._check(examples, has_enough, classes, "classes", "min_classes")
            is_kept &= has_enough
        return is_kept

    def _check(self, examples: Examples, is_met: np.ndarray, counts: np.ndarray, what: str, bound: str) -> None:
        """Refuse the first client below a bound, unless such clients are dropped."""
        if self.on_small == "drop" or is_met.all():
            return
        client = int(np.argmin(is_met))
        raise ConfigError(
            f"task.partition: {examples.name_of(client)} has too few {what} ({counts[client]}, natural.{bound} is "
            f"{getattr(self, bound)}){and_others(int(np.count_nonzero(~is_met)) - 1)}; leave such clients out with "
            f"partition: {{name: natural, on_small: drop}}, or lower {bound}"
        )


def _classes_of(examples: Examples) -> np.ndarray:
    """Return the number of different labels of each client."""
    assert examples.clients is not None
    num_classes = int(examples.labels.max()) + 1
    pairs = np.unique(examples.clients * np.int64(num_classes) + examples.labels)
    return np.bincount(pairs // num_classes, minlength=int(examples.clients.max()) + 1)
