"""Aliases: names of the literature for a method with given parts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields
from math import isnan
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fedreuse.core.method import BufferPolicy, ClientHalf, ServerHalf
    from fedreuse.core.needs import Needs

__all__ = ["Alias", "alias"]

Check = tuple["Callable[[Any], bool]", str]

_POSITIVE: Check = (lambda number: number > 0, "must be positive")
_NOT_NEGATIVE: Check = (lambda number: number >= 0, "must not be negative")
_BELOW_ONE: Check = (lambda number: 0 <= number < 1, "must be in [0, 1)")
_SHARE: Check = (lambda number: 0 < number <= 1, "must be in (0, 1]")
_RANGES: Mapping[str, Check] = {
    "server_lr": _NOT_NEGATIVE,
    "mu": _NOT_NEGATIVE,
    "zeta": _NOT_NEGATIVE,
    "depth": _NOT_NEGATIVE,
    "xi": _NOT_NEGATIVE,
    "beta": _BELOW_ONE,
    "beta1": _BELOW_ONE,
    "beta2": _BELOW_ONE,
    "tau": _POSITIVE,
    "eps": _POSITIVE,
    "v0": (lambda number: number is None or number >= 0, "must not be negative"),
    "decay": _SHARE,
    "ratio": _SHARE,
    "server_ratio": _SHARE,
    "max_lag": (lambda number: number is None or number >= 1, "must be at least 1 (or null)"),
    "threshold": (lambda number: not isnan(number), "must be a number"),
}
"""Checks of alias fields; the parts check their values, too, but their messages name the parts' own keys."""


class Alias(MethodConfig):
    """A name for a method with given parts; its fields are the hyperparameters that the literature names.

    An alias is a frozen dataclass that defines `expand`, and `default_uplink` or `default_downlink` if links belong to
    the method.
    """

    def __post_init__(self) -> None:
        """Check the ranges; the parts check themselves."""
        for field in fields(self):  # type: ignore[arg-type]  # every alias is a dataclass
            if field.name in _RANGES:
                is_fine, text = _RANGES[field.name]
                require(is_fine(getattr(self, field.name)), f"method.{field.name} {text}", getattr(self, field.name))
        self.expand()  # also checks the parts and, below, the links: errors appear when a configuration is read
        _ = self.default_uplink, self.default_downlink

    @abstractmethod
    def expand(self) -> MethodConfig:
        """Return the method with its parts."""

    @property
    def needs(self) -> Needs:
        """Needs of the expanded method."""
        return self.expand().needs

    @property
    def is_personal(self) -> bool:
        """True if the expanded method evaluates personal models."""
        return self.expand().is_personal

    def halves(self, buffers: BufferPolicy) -> tuple[ServerHalf[Any], ClientHalf[Any]]:
        """Return the halves of the expanded method."""
        return self.expand().halves(buffers)


def alias(name: str) -> Callable[[type[MethodConfig]], type[MethodConfig]]:
    """Register an alias; keys that would change one of its parts are refused with an explanation."""
    reason = f"{name} is an alias with fixed parts; `fedreuse describe {name}` shows them, write them out"
    return methods.register(name, refuses=dict.fromkeys(("aggregate", "step", "prox"), reason))
