"""Workloads of benchmarks: the reference, a smaller one of the same form, and ResNet-18."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fedreuse.config.run_config import RunConfig

__all__ = ["WORKLOADS", "configure"]

_SGD = {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4}
_REFERENCE: dict[str, Any] = {
    "task": {"name": "fashion_mnist", "clients": 50, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "network": {"name": "cnn"},
    "local": {"epochs": 3, "batch": 128, "optimizer": _SGD},
    "method": {"name": "fedavg"},
    "uplink": {"update": {"name": "top_k", "ratio": 0.2}},
    "rounds": {"cohort": 10},
    "seed": 101,
}
WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "reference": _REFERENCE,
    "resnet18": {
        **_REFERENCE,
        "task": {"name": "cifar10", "clients": 50, "partition": {"name": "dirichlet", "alpha": 0.5}},
        "network": {"name": "resnet18"},
        "rounds": {"cohort": 4},
    },
    "tiny": {
        **_REFERENCE,
        "task": {"name": "digits", "clients": 6, "partition": {"name": "dirichlet", "alpha": 0.5}},
        "network": {"name": "cnn", "width": 4, "hidden": 8},
        "local": {"epochs": 2, "batch": 32, "optimizer": _SGD},
        "rounds": {"cohort": 3},
    },
}
"""Workloads by name: the reference of the documentation, ResNet-18 on CIFAR-10, and a tiny one for tests."""


def configure(workload: str, rounds: int, overrides: Sequence[str] = ()) -> RunConfig:
    """Return a run with a number of rounds, evaluated only in the first and the last."""
    plain = dict(WORKLOADS[workload])
    plain["rounds"] = {**plain["rounds"], "count": rounds, "evaluate_every": rounds}
    return load(plain, list(overrides))
