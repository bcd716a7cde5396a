"""Checks of runs with a private mean, and the privacy budget that they have spent.

Two federations are neighbours if they differ in whether one client's updates are zero. The server releases models; the
selection of clients is public, so there is no amplification by sampling, and every selection counts.
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
from fedreuse.robustness.privacy_accountant import epsilon, releases

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.accounting.ledger import EventRow
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.method import MethodConfig
    from fedreuse.store.directory import RunDirectory

__all__ = ["SECRET_FILE", "check_private_method", "check_private_run", "private_mean_of", "secret_of", "spent"]

SECRET_FILE = "privacy.secret"
"""File in the run directory of a server with real clients: the secret from which noise and cohorts are drawn."""
_REFUSED = "method.aggregate: private_mean"


def private_mean_of(method: MethodConfig) -> PrivateMean | None:
    """Return the private mean of a method, or of the inner method of a wrapper; None if there is none."""
    while isinstance(method, Wrapper):
        method = method.inner
    return method.aggregate if isinstance(method.aggregate, PrivateMean) else None


def check_private_method(method: MethodConfig) -> None:
    """Refuse a private mean in a method that releases more of a client than the clipped, noisy sum."""
    if private_mean_of(method) is None:
        return
    if not isinstance(method, Averaging | DgFedReuse):
        raise ConfigError(
            f"{_REFUSED} in method {methods.name_of(method)} is refused, because its guarantee covers only updates "
            "that go through one mean (not controls, layer choices and other memories); use averaging or dg_fedreuse"
        )
    if method.step is not None and method.step.reads_statistics:
        raise ConfigError(
            f"{_REFUSED} with a step that reads single updates is refused, because they are without noise; use sgd, "
            "momentum, adam, yogi or adagrad"
        )
    gate = method.gate if isinstance(method, DgFedReuse) else None
    if gate is not None and gate.compares_scores:
        raise ConfigError(
            f"{_REFUSED} with this gate is refused, because one client's score would influence whether another trains, "
            "and so change more than its own term of the sum; use {name: proxy, quota: 0}, {name: drift, quota: 0}, "
            "age_only, random or always"
        )


def check_private_run(config: RunConfig) -> None:
    """Refuse settings that release more than the models: choices by clients' validation examples without noise."""
    if private_mean_of(config.method) is None:
        return
    if config.rounds.patience is not None or config.keep.model == "best":
        setting = "rounds.patience" if config.rounds.patience is not None else "keep.model: best"
        raise ConfigError(
            f"{setting} uses clients' validation examples without noise, which {_REFUSED} excludes; remove it"
        )


def secret_of(config: RunConfig, directory: RunDirectory, has_real_clients: bool) -> bytes | None:
    """Return the server's secret, created once; None in a simulation, whose noise follows from the seed.

    Raises:
        ConfigError: Models would be released before they are stored. A round repeated after a crash with other replies
            would reuse its noise, and the difference of the two models would reveal the updates.
        RunDirectoryError: The secret of a run in progress is missing.
    """
    if private_mean_of(config.method) is None:
        return None
    if not has_real_clients:
        return None
    if config.checkpoint_every != 1:
        raise ConfigError(
            f"checkpoint_every is {config.checkpoint_every}: with {_REFUSED} every round must be stored before its "
            "model is released, or a crash would release two sums with the same noise; set checkpoint_every: 1"
        )
    path = directory.path / SECRET_FILE
    if not path.exists():
        if directory.has_rounds:
            raise RunDirectoryError(
                f"{path}, from which the noise of this run is drawn, is missing; restore it, or start a new run"
            )
        # Readable by the owner only, and synced before the first round: a lost secret would end the run.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(token_bytes(32))
            os.fsync(file.fileno())
    return path.read_bytes()


def spent(method: MethodConfig, events: Iterable[EventRow]) -> dict[str, Any] | None:
    """Return epsilon and its parameters; None without a private mean.

    A cached update that DG-FedReuse reuses is another release, smaller by its decay. It is counted as such if the gate
    decides without data; under a gate with scores, the decision itself reveals something, so every selection counts in
    full.
    """
    rule = private_mean_of(method)
    if rule is None:
        return None
    knows_decay = isinstance(method, DgFedReuse) and not method.gate.is_scored
    count = releases(events, method.rho if isinstance(method, DgFedReuse) and knows_decay else None)
    total = epsilon(rule.noise, count, rule.delta)
    return {"epsilon": total, "delta": rule.delta, "noise": rule.noise, "clip": rule.clip, "releases": count}
