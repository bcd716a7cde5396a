"""What FedAdam, FedYogi, FedAdagrad and FedAvgM share: the reference, the mistakes of public code, buffers, ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.tensors import is_equal
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.methods.aliases import FedAdagrad, FedAdam, FedAvgM, FedYogi
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.fedopt import Options, fedopt
from tests.tiny import results, tiny

ROUNDS = 5
ADAPTIVE = {"fedadam": "adam", "fedyogi": "yogi", "fedadagrad": "adagrad"}
FAMILY = [*ADAPTIVE, "fedavgm"]


def federation() -> QuadraticFederation:
    return QuadraticFederation.draw(training=NOISY)


def played(name: str, ratio: float | None = None, **options: Any) -> Session:
    return federation().play(build(name, None if ratio is None else top_k(ratio), **options), ROUNDS)


def assert_is(session: Session, options: Options, ratio: float | None = None) -> None:
    wanted = fedopt(plain_problem(session.federation, ROUNDS, 3), options, ratio)
    for model, (weights, statistics, counter, _, _) in zip(session.models[1:], wanted, strict=True):
        assert_close(model, weights, statistics, counter)


# the reference


@pytest.mark.parametrize("ratio", [None, 0.3])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_the_adaptive_three_equal_the_reference(name: str, ratio: float | None) -> None:
    session = played(name, ratio, server_lr=0.2, beta1=0.7, beta2=0.8, tau=0.05)
    options = Options(ADAPTIVE[name], 0.2, 0.7, 0.8, 0.05)
    assert_is(session, options, ratio)
    *_, m, v = fedopt(plain_problem(session.federation, ROUNDS, 3), options, ratio)[-1]
    np.testing.assert_allclose(session.record.state.step.first.values, m, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(session.record.state.step.second.values, v, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_bias_correction_and_start_equal_the_reference(name: str) -> None:
    session = played(name, server_lr=0.2, beta1=0.7, beta2=0.8, tau=0.05, v0=0.3, bias_correction=True)
    assert_is(session, Options(ADAPTIVE[name], 0.2, 0.7, 0.8, 0.05, 0.3, True))


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_equals_the_reference(nesterov: bool) -> None:
    session = played("fedavgm", 0.3, server_lr=0.4, beta=0.8, nesterov=nesterov)
    assert_is(session, Options("avgm", 0.4, 0.8, nesterov=nesterov), 0.3)


# mistakes of public code: each gives another trajectory than the package


@pytest.mark.parametrize("wrong", ["late", "momentum", "inside"])
@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
def test_the_mistakes_of_public_code_are_not_ours(name: str, wrong: str) -> None:
    given = {"server_lr": 0.2, "beta1": 0.7, "beta2": 0.8, "tau": 0.05, "v0": 0.0, "bias_correction": True}
    session = played(name, **given)
    right = Options(ADAPTIVE[name], 0.2, 0.7, 0.8, 0.05, 0.0, True)
    assert_is(session, right)
    mistaken = Options(ADAPTIVE[name], 0.2, 0.7, 0.8, 0.05, 0.0, True, wrong=wrong)
    with pytest.raises(AssertionError):
        assert_is(session, mistaken)


def test_bias_correction_counts_steps_not_rounds() -> None:
    """A round in which nobody answers is no step: the correction after it is the one that was due."""
    nobody = Listed(tuple(ListedFault(2, client, "lost") for client in range(8)))
    session = federation().play(build("fedadam", bias_correction=True, v0=0.0), 3, Setting(faults=nobody))
    assert session.record.state.step.num_steps == 2
    assert is_same(session.models[1], session.models[2])


# what the step does not touch


@pytest.mark.parametrize("name", FAMILY)
def test_buffers_and_counters_bypass_the_step(name: str) -> None:
    first, average = played(name).models[1], federation().play(build("fedavg"), 1).models[1]
    assert is_equal(first.buffers, average.buffers)
    assert is_equal(first.counters, average.counters)
    assert not is_equal(first.weights, average.weights)


@pytest.mark.parametrize("name", FAMILY)
def test_bytes_are_those_of_fedavg(name: str) -> None:
    rows, plain = (federation().play(build(method, top_k(0.3)), ROUNDS).ledger.rows for method in (name, "fedavg"))
    assert [row.total_bytes for row in rows] == [row.total_bytes for row in plain]


@pytest.mark.parametrize("name", FAMILY)
def test_ratio_one_is_dense_bit_for_bit(name: str) -> None:
    assert is_same(played(name, 1.0).model, played(name).model)


@pytest.mark.parametrize("name", FAMILY)
def test_a_server_step_of_zero_leaves_the_weights(name: str) -> None:
    session = played(name, server_lr=0.0)
    assert all(is_equal(model.weights, session.models[0].weights) for model in session.models)


@pytest.mark.slow
def test_a_network_at_ratio_one_is_the_dense_one_bit_for_bit(tmp_path: Path) -> None:
    for name in FAMILY:
        dense = run(tiny(f"method={name}", "rounds.count=2"), tmp_path / name)
        whole = run(tiny(f"method={name}", "rounds.count=2", uplink={"update": top_k(1.0)}), tmp_path / f"{name}-1")
        assert results(whole)["model"] == results(dense)["model"]


@pytest.mark.slow
def test_yogi_begins_a_network_as_adam_does(tmp_path: Path) -> None:
    adam, yogi = (
        run(tiny(f"method={{name: {name}, v0: 0.0}}", "rounds.count=1"), tmp_path / name)
        for name in ("fedadam", "fedyogi")
    )
    assert results(adam)["model"] == results(yogi)["model"]


# configuration


@pytest.mark.parametrize(
    ("field", "value"),
    [("server_lr", -1.0), ("beta1", 1.0), ("beta1", -0.1), ("beta2", 1.0), ("tau", 0.0), ("v0", -1.0)],
)
def test_values_out_of_range_are_refused(field: str, value: float) -> None:
    for method in (FedAdam, FedYogi, FedAdagrad):
        with pytest.raises(ConfigError, match=rf"method\.{field} must.*got {value}"):
            method(**{field: value})


@pytest.mark.parametrize(("field", "value"), [("server_lr", -1.0), ("beta", 1.0), ("beta", -0.1)])
def test_momentum_out_of_range_is_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{field} must.*got {value}"):
        FedAvgM(**{field: value})
