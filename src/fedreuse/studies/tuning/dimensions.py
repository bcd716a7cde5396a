"""Dimensions of a search space: one setting each, with bounds that may depend on settings above it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    import optuna

__all__ = ["Dimension", "parse_dimensions"]

_KINDS = ("choice", "int", "float", "log")
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max}


@dataclass(frozen=True)
class Dimension:
    """Setting of a configuration that is searched.

    Args:
        key: The dotted key, such as `method.gate.tau_start`.
        kind: `choice`, `int`, `float`, or `log` (a float whose logarithm is uniform).
        values: The choices; for the other kinds two bounds, each a number or an expression of + - * / min max and the
            last words of keys above, such as `min(tau_start - 0.01, 0.85)`.
    """

    key: str
    kind: str
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Name of the dimension in expressions."""
        return self.key.rpartition(".")[2]

    def suggest(self, trial: optuna.Trial, chosen: Mapping[str, Any]) -> Any:
        """Return a value for a trial; `chosen` holds the values of the dimensions above, by name."""
        if self.kind == "choice":
            return trial.suggest_categorical(self.key, self.values)
        low, high = (_evaluate(bound, chosen, self.key) for bound in self.values)
        if low > high:
            raise ConfigError(f"space.{self.key}: the bounds {self.values} are {low:g} and {high:g} for {dict(chosen)}")
        if self.kind == "int":
            return trial.suggest_int(self.key, int(low), int(high))
        return trial.suggest_float(self.key, low, high, log=self.kind == "log")


def parse_dimensions(given: object, where: str) -> tuple[Dimension, ...]:
    """Parse dimensions such as `key: {float: [0.1, 0.9]}`, in the order of the file."""
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"{where}: dimensions expected, such as {{method.mu: {{log: [1e-5, 1e-2]}}}}; got {given!r}")
    dimensions: list[Dimension] = []
    for key, spec in given.items():
        at = f"{where}.{key}"
        if not isinstance(spec, Mapping) or len(spec) != 1 or next(iter(spec)) not in _KINDS:
            raise ConfigError(f"{at}: one of {', '.join(_KINDS)} with its values expected, got {spec!r}")
        kind, values = next(iter(spec.items()))
        if not isinstance(values, list) or (len(values) != 2 if kind != "choice" else not values):
            raise ConfigError(f"{at}.{kind}: {'two bounds' if kind != 'choice' else 'a list'} expected, got {values!r}")
        dimension = Dimension(str(key), kind, tuple(values))
        if kind != "choice":
            known = {above.name: 1.0 for above in dimensions}
            for bound in dimension.values:
                _evaluate(bound, known, at)
        dimensions.append(dimension)
    return tuple(dimensions)


def _evaluate(bound: Any, chosen: Mapping[str, Any], where: str) -> float:
    if isinstance(bound, int | float) and not isinstance(bound, bool):
        return float(bound)
    try:
        return float(_value(ast.parse(str(bound), mode="eval").body, chosen))
    except (SyntaxError, TypeError, ValueError, ZeroDivisionError, KeyError) as error:
        raise ConfigError(
            f"{where}: the bound {bound!r} is neither a number nor an expression of + - * / min max and dimensions "
            f"above it ({', '.join(chosen) or 'none'}): {error}"
        ) from None


def _value(node: ast.expr, chosen: Mapping[str, Any]) -> Any:
    """Evaluate an expression node by node, without executing it as code."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return chosen[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, chosen)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, chosen), _value(node.right, chosen))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_value(argument, chosen) for argument in node.args))
    raise ValueError(f"{ast.unparse(node)} is not allowed")
