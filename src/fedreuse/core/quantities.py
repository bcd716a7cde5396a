"""Quantities with units: `10mbit`, `50ms`, `1%`, `2gflops`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite

from fedreuse.core.errors import ConfigError

__all__ = ["BITS", "FLOPS", "SECONDS", "quantity"]

BITS: Mapping[str, float] = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
SECONDS: Mapping[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
FLOPS: Mapping[str, float] = {"flops": 1.0, "mflops": 1e6, "gflops": 1e9, "tflops": 1e12}
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z%]*)\s*", re.IGNORECASE)


def quantity(what: str, value: object, units: Mapping[str, float], example: str) -> float:
    """Return a number in the base unit.

    Args:
        what: Name of the quantity or its key, for errors.
        value: A text such as `10mbit`, or a number in the base unit.
        units: Factor of each unit.
        example: A valid text, for errors.

    Raises:
        ConfigError: If the value is neither.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in units:
        raise ConfigError(
            f"{what}: a number and a unit ({', '.join(units)}) expected, such as {example}, got {value!r}"
        )
    return float(match[1]) * units[match[2].lower()]
