"""Combinations that had no name: each against a straight-line reference; and the old spelling of a field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import methods
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.aliases import FedAdam, FedAvg, FedProx, FedVarp, Laq
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.fedstale import FedStale
from fedreuse.methods.mifa import Mifa
from fedreuse.methods.movement import Movement
from fedreuse.methods.server_steps.adaptive import AdamStep
from fedreuse.methods.server_steps.sgd import SgdStep
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, assert_close, build, plain_problem, top_k
from tests.references import dg_fedreuse as dg
from tests.references import scaffold as sc
from tests.references.fedopt import Options, fedopt, server_steps
from tests.references.mifa import mifa

ROUNDS = 6
FEDERATION = QuadraticFederation.draw(training=NOISY)
SIZE = 12


def assert_follows(session: Session, wanted: Any) -> None:
    """Every round's model is that of the reference."""
    for model, step in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *step)


def test_adam_with_a_proximal_pull() -> None:
    step = {"name": "adam", "lr": 0.2, "beta1": 0.7, "beta2": 0.8, "tau": 0.05}
    session = FEDERATION.play(build("averaging", prox=0.4, step=step), ROUNDS)
    wanted = fedopt(plain_problem(FEDERATION, ROUNDS, 3), Options("adam", 0.2, 0.7, 0.8, 0.05), mu=0.4)
    assert_follows(session, [one[:3] for one in wanted])


def test_dg_fedreuse_with_an_adam_step() -> None:
    federation = QuadraticFederation.draw(8, replace(NOISY, noise=1.0))
    gate = {"name": "proxy", "tau_start": 0.3, "tau_floor": 0.1, "decay": 0.2, "max_age": 3, "quota": 0.7, "batches": 2}
    step = {"name": "adam", "lr": 0.1, "tau": 0.05}
    method = build("dg_fedreuse", top_k(0.4), gate=gate, rho=0.6, mu=0.3, signature_ema=0.8, step=step)
    session = federation.play(method, 9, Setting(cohort=5))
    options = dg.Options(
        tau_0=0.3, tau_min=0.1, gamma=0.2, max_age=3, quota=0.7, rho=0.6, mu=0.3, ema=0.8, batches=2, ratio=0.4,
        as_weights=False, move=server_steps(Options("adam", 0.1, tau=0.05), SIZE),
    )  # fmt: skip
    wanted = dg.dg_fedreuse(plain_problem(federation, 9, 5, batches=2), options)
    assert_follows(session, [(one.weights, one.statistics, one.counter) for one in wanted])
    assert {event.outcome for event in session.ledger.events} == {"fresh", "reused"}


def test_scaffold_with_momentum_at_the_server() -> None:
    session = FEDERATION.play(build("scaffold", step={"name": "momentum", "lr": 0.6, "beta": 0.5}), ROUNDS)
    options = sc.Options(move=server_steps(Options("avgm", 0.6, 0.5), SIZE))
    wanted = sc.scaffold(plain_problem(FEDERATION, ROUNDS, 3), options)
    assert_follows(session, [(one.weights, one.statistics, one.counter) for one in wanted])


def test_mifa_with_a_yogi_step() -> None:
    session = FEDERATION.play(build("mifa", top_k(0.5), step={"name": "yogi", "lr": 0.1, "tau": 0.02}), ROUNDS)
    move = server_steps(Options("yogi", 0.1, tau=0.02), SIZE)
    assert_follows(session, mifa(plain_problem(FEDERATION, ROUNDS, 3), ratio=0.5, move=move))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"name": "proxskip", "step": "adam"}, r"method\.step: refused, because the shifts of all clients sum to zero"),
        ({"name": "gradskip", "aggregate": "mean"}, r"method\.aggregate: refused, because the shifts"),
        ({"name": "fedstale", "aggregate": "mean"}, r"method\.aggregate: refused, because its direction is a sum"),
        ({"name": "mifa", "aggregate": "mean"}, r"method\.aggregate: refused, because it maintains a running mean"),
        ({"name": "docofl", "step": "adam"}, r"method\.step: refused, because .* method\.inner"),
        ({"name": "scaffold", "step": "adam", "server_lr": 0.5}, r"server_lr must stay 1 beside method\.step"),
        (
            {"name": "dg_fedreuse", "renormalise": True, "aggregate": {"name": "mean", "weighting": "ht"}},
            r"renormalise",
        ),
        ({"name": "averaging", "step": "rmsprop"}, r"method\.step: 'rmsprop' is not one of the server_steps"),
        ({"name": "averaging", "prox": -1.0}, r"method\.prox must not be negative"),
    ],
)
def test_what_mathematics_does_not_allow_is_refused_with_the_reason(method: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        methods.parse(method, "method")


def test_trees_of_some_names() -> None:
    assert FedAvg(0.5, "ht").expand() == Averaging(0.0, Mean("ht"), SgdStep(0.5))
    assert FedProx(0.1).expand() == Averaging(0.1)
    assert FedAdam().expand() == Averaging(step=AdamStep())
    assert FedVarp(0.5).expand() == FedStale(1.0, 0.5)
    assert Laq(agg="all", server_lr=0.5, xi=1.0).expand() == Movement(Mifa(server_lr=0.5), 10, 4.0)
    assert Laq(agg="participants").expand() == Movement(FedAvg().expand(), 10, 0.8)


def test_a_step_that_is_not_chosen_is_null() -> None:
    plain = load({"task": {"name": "digits"}, "method": "scaffold"}).to_plain()["method"]
    assert (plain["step"], plain["aggregate"]) == (None, None)
    chosen = load({"task": {"name": "digits"}, "method": {"name": "scaffold", "step": "momentum"}})
    assert chosen.to_plain()["method"]["step"]["name"] == "momentum"
    assert load(chosen.to_plain()) == chosen
