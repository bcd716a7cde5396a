"""Runs with a private mean: where the mathematics does not hold they are refused; what they spent is told.

Two federations are neighbours if they differ in whether one client's updates are zero. What leaves the server are
models; whoever is selected is public, so nothing is gained by sampling, and every selection counts.
"""

from __future__ import annotations

import os
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.core.method import methods
from fedreuse.methods.aggregators.private_mean import PrivateMean
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.wrapper import Wrapper
from fedreuse.robustness.privacy_accountant import epsilon, releases, require_accountant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.accounting.ledger import EventRow
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.method import MethodConfig
    from fedreuse.store.directory import RunDirectory

__all__ = ["SECRET_FILE", "check_private_method", "check_private_run", "private_mean_of", "secret_of", "spent"]

SECRET_FILE = "privacy.secret"
"""In the run directory of a server with real clients: what noise and cohorts are drawn from."""
_REFUSED = "method.aggregate: private_mean"


def private_mean_of(method: MethodConfig) -> PrivateMean | None:
    """The private mean of a method, wherever it stands in it."""
    while isinstance(method, Wrapper):
        method = method.inner
    return method.aggregate if isinstance(method.aggregate, PrivateMean) else None


def check_private_method(method: MethodConfig) -> None:
    """Refuse a private mean in a method that lets more of a client out than its clipped, noisy sum."""
    if private_mean_of(method) is None:
        return
    if not isinstance(method, Averaging | DgFedReuse):
        raise ConfigError(
            f"{_REFUSED} in method {methods.name_of(method)} is refused, because it holds only for what goes through "
            "one mean (controls, layer choices and other memories go past it); take averaging or dg_fedreuse"
        )
    if method.step is not None and method.step.reads_statistics:
        raise ConfigError(
            f"{_REFUSED} with a step that looks at single updates is refused, because they are not noisy; take sgd, "
            "momentum, adam, yogi or adagrad"
        )
    gate = method.gate if isinstance(method, DgFedReuse) else None
    if gate is not None and gate.compares_scores:
        raise ConfigError(
            f"{_REFUSED} with this gate is refused, because one client's score would decide whether another trains, "
            "and so change more than its own share of the sum; take {name: proxy, quota: 0}, {name: drift, quota: 0}, "
            "age_only, random or always"
        )


def check_private_run(config: RunConfig) -> None:
    """Refuse what would let out more than the models: choices that look at clients' examples without noise."""
    if private_mean_of(config.method) is None:
        return
    if config.rounds.patience is not None or config.keep.model == "best":
        what = "rounds.patience" if config.rounds.patience is not None else "keep.model: best"
        raise ConfigError(
            f"{what} chooses by clients' validation examples without noise, which {_REFUSED} excludes; drop it"
        )


def secret_of(config: RunConfig, directory: RunDirectory, has_real_clients: bool) -> bytes | None:
    """The server's secret, made once; None in a simulation, whose noise follows from the seed.

    Raises:
        ConfigError: Rounds would be told before they are stored: repeated after a crash with other replies, the same
            noise would cancel.
        RunDirectoryError: A run that has begun lost its secret.
    """
    if private_mean_of(config.method) is None:
        return None
    require_accountant()
    if not has_real_clients:
        return None
    if config.checkpoint_every != 1:
        raise ConfigError(
            f"checkpoint_every is {config.checkpoint_every}: with {_REFUSED} every round must be stored before its "
            "model is told, or a crash would tell two sums under the same noise; set checkpoint_every: 1"
        )
    path = directory.path / SECRET_FILE
    if not path.exists():
        if directory.has_rounds:
            raise RunDirectoryError(
                f"{path} is gone, from which the noise of this run is drawn, so it cannot go on; bring it back, or "
                "start a new run"
            )
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(token_bytes(32))
            os.fsync(file.fileno())
    return path.read_bytes()


def spent(method: MethodConfig, events: Iterable[EventRow]) -> dict[str, Any] | None:
    """Epsilon and what it stands for; None without a private mean.

    What DG-FedReuse reuses is a release of its own, smaller by its decay. It is counted so if the gate decides without
    looking at data; under a gate with scores, who is reused tells something, and every selection counts in full.
    """
    rule = private_mean_of(method)
    if rule is None:
        return None
    knows_decay = isinstance(method, DgFedReuse) and not method.gate.is_scored
    count = releases(events, method.rho if isinstance(method, DgFedReuse) and knows_decay else None)
    found = epsilon(rule.noise, count, rule.delta)
    return {"epsilon": found, "delta": rule.delta, "noise": rule.noise, "clip": rule.clip, "releases": count}
