"""The metrics of a run: one that selects, others by name that are reported beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError
from fedreuse.core.metrics import Metrics
from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.targets import num_counted

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["Scoring", "parse_metrics"]

_TAKEN = ("score", "examples", "mean", "worst_decile")
"""What columns of a run directory are called already."""


@dataclass(frozen=True)
class Scoring:
    """The metric that selects, and others by name."""

    selects: Metric
    others: Mapping[str, Metric] = field(default_factory=dict)

    def measure(self, outputs: torch.Tensor, labels: torch.Tensor, loss: float) -> Metrics:
        """The states of a batch; `loss` is its sum."""
        score, *more = (_state(metric, outputs, labels) for metric in (self.selects, *self.others.values()))
        return Metrics(num_counted(labels), loss, score, tuple(more))

    def read(self, found: Metrics) -> dict[str, float]:
        """The numbers that merged states stand for; nan where a metric is undefined."""
        values = {"score": self.selects.value(found.score, found.examples), "loss": found.mean_loss}
        states = zip(self.others.items(), found.more, strict=True)
        return values | {name: metric.value(state, found.examples) for (name, metric), state in states}


def parse_metrics(value: object, where: str) -> dict[str, Metric]:
    """Metrics by name: a mapping gives the names, in a list each has its own; the loss is reported anyway."""
    if isinstance(value, str) or (isinstance(value, Mapping) and "name" in value):
        value = [value]
    if not isinstance(value, Mapping | list | tuple):
        raise ConfigError(f"{where}: a list of metrics expected, for example [accuracy, macro_f1]; got {value!r}")
    named = list(value.items()) if isinstance(value, Mapping) else [(_own_name(spec), spec) for spec in value]
    found: dict[str, Metric] = {}
    for name, spec in named:
        if spec == "loss":
            continue
        if not isinstance(name, str) or name in (*_TAKEN, "loss"):
            raise ConfigError(f"{where}: a metric cannot be called {name!r}, which stands for something else already")
        if name in found:
            raise ConfigError(
                f"{where}: {name} is there twice; name them apart, for example "
                f"{{first: {{name: {name}, ...}}, second: {{name: {name}, ...}}}}"
            )
        found[name] = metrics.parse(spec, f"{where}.{name}")
    return found


def _own_name(spec: Any) -> Any:
    return spec.get("name", "") if isinstance(spec, Mapping) else spec


def _state(metric: Metric, outputs: torch.Tensor, labels: torch.Tensor) -> State:
    state = metric(outputs, labels)
    if not _is_state(state):
        raise ConfigError(
            f"metric {metrics.name_of(metric)} gives {type(state).__name__} for a batch; a number of Python is needed "
            "(float(...), int(...)), or a tuple of numbers"
        )
    return state


def _is_state(state: object) -> bool:
    return all(map(_is_state, state)) if isinstance(state, tuple) else isinstance(state, int | float)
