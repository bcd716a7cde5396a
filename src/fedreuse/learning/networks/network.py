"""What a network is to the configuration: something that builds a torch module; one's own by `package.module:name`."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import Registry

__all__ = ["Network", "OwnNetwork", "networks"]


class Network(ABC):
    """Builds a module for inputs of a shape and a number of classes."""

    @abstractmethod
    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """A new module with its initial weights (torch's generator is seeded by the caller)."""


@dataclass(frozen=True)
class OwnNetwork(Network):
    """A user's module class or function; `shape` and `num_classes` are passed if it takes them."""

    target: Callable[..., nn.Module]
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Call the user's object with the configured options."""
        known = {"shape": shape, "num_classes": num_classes}
        accepted = inspect.signature(self.target).parameters
        arguments = {name: given for name, given in known.items() if name in accepted} | self.options
        try:
            module = self.target(**arguments)
        except TypeError as error:
            raise ConfigError(f"network: {self.name}({', '.join(arguments)}) failed: {error}") from error
        if not isinstance(module, nn.Module):
            raise ConfigError(f"network: {self.name} returned {type(module).__name__}, a torch.nn.Module is needed")
        return module

    def to_plain(self) -> dict[str, Any]:
        """The options alone; the registry writes the name."""
        return dict(self.options)


networks: Registry[Network] = Registry("networks", "fedreuse.learning.networks", adapt=OwnNetwork, base=Network)
