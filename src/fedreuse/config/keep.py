"""The settings of what a run keeps beside its last state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedreuse.core.errors import require

__all__ = ["Keep"]


@dataclass(frozen=True)
class Keep:
    """What a run keeps.

    Args:
        model: Which model is the result, and is tested: that of the `last` round, or of the round with the `best`
            validation score (the first of equals). `best` is part of the run id.
        models: Rounds after which the model is stored, as `models/round-NNNNN.safetensors`.
        states: Rounds after which everything is stored (server and clients), as `states/round-NNNNN.sqlite`.
        checkpoints: How many of the last checkpoints are kept whole, to go back to with `--resume --from-round`.

    Raises:
        ConfigError: A round below 1, or a negative number.

    Example:
        keep: {model: best, models: [30, 60], checkpoints: 3}
    """

    model: Literal["last", "best"] = "last"
    models: tuple[int, ...] = ()
    states: tuple[int, ...] = ()
    checkpoints: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.checkpoints >= 0, "checkpoints must not be negative", self.checkpoints)
        for name in ("models", "states"):
            rounds = getattr(self, name)
            require(all(number >= 1 for number in rounds), f"{name} must be rounds from 1 on", list(rounds))

    @property
    def has_copies(self) -> bool:
        """Whether whole states are kept, which takes stores in memory: files of a store are not copied."""
        return bool(self.states or self.checkpoints)
