"""Settings for the models and states that a run keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedreuse.core.errors import require

__all__ = ["Keep"]


@dataclass(frozen=True)
class Keep:
    """The models and states that a run keeps.

    Args:
        model: The model that is the result of the run and is tested: that of the `last` round, or of the round with
            the `best` validation score (the first of equals). `best` is part of the run id.
        models: Rounds after which the model is stored, as `models/round-NNNNN.safetensors`.
        states: Rounds after which the state of server and clients is stored, as `states/round-NNNNN.sqlite`.
        checkpoints: Number of the last checkpoints that are kept, not negative; `--resume --from-round` returns to one.

    Raises:
        ConfigError: If a round is below 1, or `checkpoints` is negative.

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
        """True if states are copied, which requires stores in memory: files of a store are not copied."""
        return bool(self.states or self.checkpoints)
