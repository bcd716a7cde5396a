"""The metrics of a run: the one that selects models, and others that are reported by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError
from fedreuse.core.metrics import Metrics
from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.targets import num_counted

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["Scoring", "parse_metrics"]

_TAKEN = ("score", "examples", "mean", "worst_decile")
"""Names of other columns in a run directory."""


@dataclass(frozen=True)
class Scoring:
    """The metric that selects models, and the others by name."""

    selects: Metric
    others: Mapping[str, Metric] = field(default_factory=dict)

    def measure(self, outputs: torch.Tensor, labels: torch.Tensor, loss: float) -> Metrics:
        """Return the states of a batch; `loss` is the sum over the batch.

        Raises:
            ConfigError: A custom metric returns something else than Python numbers.
        """
        score, *more = (_state(metric, outputs, labels) for metric in (self.selects, *self.others.values()))
        return Metrics(num_counted(labels), loss, score, tuple(more))

    def read(self, merged: Metrics) -> dict[str, float]:
        """Return the values of merged states; nan if a metric is undefined.

        Raises:
            ConfigError: The value of a custom metric is not a number.
        """
        values = {"score": self.selects.value(merged.score, merged.examples), "loss": merged.mean_loss}
        states = zip(self.others.items(), merged.more, strict=True)
        values |= {name: metric.value(state, merged.examples) for (name, metric), state in states}
        for name, value in values.items():
            if not isinstance(value, int | float):
                metric = metrics.name_of(self.others.get(name, self.selects))
                raise ConfigError(f"metric {metric}: its value is {type(value).__name__}; a Python number is needed")
        return values


def parse_metrics(value: object, where: str) -> dict[str, Metric]:
    """Parse metrics by name: a mapping gives the names, in a list each metric has its own name.

    The entry `loss` is accepted and dropped, because the loss is always reported.

    Raises:
        ConfigError: A name is taken or occurs twice, or a metric is unknown.
    """
    if isinstance(value, str) or (isinstance(value, Mapping) and "name" in value):
        value = [value]
    if not isinstance(value, Mapping | list | tuple):
        raise ConfigError(f"{where}: a list of metrics expected, for example [accuracy, macro_f1]; got {value!r}")
    if isinstance(value, Mapping):
        named = list(value.items())
    else:
        named = [(spec.get("name", "") if isinstance(spec, Mapping) else spec, spec) for spec in value]
    parsed: dict[str, Metric] = {}
    for name, spec in named:
        if spec == "loss":
            continue
        if not isinstance(name, str) or name in (*_TAKEN, "loss"):
            raise ConfigError(f"{where}: a metric cannot be named {name!r}, which is the name of another column")
        if name in parsed:
            raise ConfigError(
                f"{where}: {name} occurs twice; give them different names, for example "
                f"{{first: {{name: {name}, ...}}, second: {{name: {name}, ...}}}}"
            )
        parsed[name] = metrics.parse(spec, f"{where}.{name}")
    return parsed


def _state(metric: Metric, outputs: torch.Tensor, labels: torch.Tensor) -> State:
    state = metric(outputs, labels)
    if not _is_state(state):
        raise ConfigError(
            f"metric {metrics.name_of(metric)} returns {type(state).__name__} for a batch; a Python number is needed "
            "(float(...), int(...)), or a tuple of numbers"
        )
    return state


def _is_state(state: object) -> bool:
    return all(map(_is_state, state)) if isinstance(state, tuple) else isinstance(state, int | float)
