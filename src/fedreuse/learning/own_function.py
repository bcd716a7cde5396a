"""A custom loss or metric function, named `package.module:name` in a configuration, with its options."""

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
    """A custom function of outputs and labels.

    Args:
        target: The function.
        name: Its name in the configuration.
        options: Further keyword arguments.

    Raises:
        ConfigError: The target is not a function.
    """

    target: Callable[..., Any]
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the target is a function."""
        if isinstance(self.target, type) or not callable(self.target):
            raise ConfigError(f"{self.name} must be a function of (outputs, labels), or a frozen dataclass")

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> Any:
        """Call the function with the configured options."""
        return self.target(outputs, labels, **self.options)

    def to_plain(self) -> dict[str, Any]:
        """Return the options; the registry adds the name."""
        return dict(self.options)
