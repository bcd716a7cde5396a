"""The base class of networks, which build torch modules; custom ones are named `package.module:name`."""

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
    """Base class of networks: frozen dataclasses that build a torch module.

    The attribute `head_layers` of the module names the layers of its head; without it the last layer is the head.

    Example:
        >>> from dataclasses import dataclass
        >>> from torch import nn
        >>> @dataclass(frozen=True)
        ... class Linear(Network):
        ...     bias: bool = True
        ...     def build(self, shape, num_classes):
        ...         return nn.Linear(shape[0], num_classes, self.bias)
        >>> Linear().build((4,), 2)
        Linear(in_features=4, out_features=2, bias=True)
    """

    @abstractmethod
    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Return a new module with its initial weights.

        Args:
            shape: Shape of one input.
            num_classes: Number of outputs: classes, tokens, flags or numbers to predict.

        Torch's generator is seeded by the caller, so the same seed gives the same weights.

        Raises:
            ConfigError: The network is not for inputs of this shape.
        """


@dataclass(frozen=True)
class OwnNetwork(Network):
    """A custom module class or function; `shape` and `num_classes` are passed if it has such parameters."""

    target: Callable[..., nn.Module]
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Call the custom object with the configured options."""
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
        """Return the options; the registry adds the name."""
        return dict(self.options)


networks: Registry[Network] = Registry("networks", "fedreuse.learning.networks", adapt=OwnNetwork, base=Network)
