"""A user's own function, named `package.module:name` in a configuration, with its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

__all__ = ["OwnFunction"]


@dataclass(frozen=True)
class OwnFunction:
    """A function of outputs and labels under its own name."""

    target: Callable[..., Any]
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that it is a function."""
        if isinstance(self.target, type) or not callable(self.target):
            raise ConfigError(f"{self.name} must be a function of (outputs, labels), or a frozen dataclass")

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> Any:
        """The user's function with the configured options."""
        return self.target(outputs, labels, **self.options)

    def to_plain(self) -> dict[str, Any]:
        """The options alone; the registry writes the name."""
        return dict(self.options)
