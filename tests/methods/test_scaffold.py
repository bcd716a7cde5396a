"""SCAFFOLD: a hand-worked round, the identities of its card, optima, mistakes of public code, a reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.compression.links.link import parse_link
from fedreuse.core.errors import ConfigError
from fedreuse.core.message import Message
from fedreuse.core.method import Method
from fedreuse.core.model import to_groups
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import is_equal
from fedreuse.engine.faults import RandomFaults
from fedreuse.methods.scaffold import Scaffold, effective_steps
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.local import Problem
from tests.references.scaffold import Options, local_path, scaffold
from tests.tiny import results, tiny


def made(update: float | None = None, control: float | None = None, **options: Any) -> Method:
    """SCAFFOLD with Top-K of these ratios on its two groups."""
    method = build("scaffold", None if update is None else top_k(update), **options)
    if control is None:
        return method
    return replace(method, uplink={**method.uplink, "control_change": parse_link(top_k(control), "uplink")})


def problem_of(federation: QuadraticFederation, num_rounds: int, cohort: int = 3) -> Problem:
    """Plain arrays, with the noise of option I's gradient."""
    problem = plain_problem(federation, num_rounds, cohort)
    size = len(problem.weights)
    for t in range(1, num_rounds + 1):
        for i in range(len(federation.examples)):
            drawn = stream(federation.seed, "control", t, i).standard_normal((1, size))
            problem.noise[t, i, "control"] = federation.training.noise * drawn
    return problem


def controls(session: Session) -> dict[int, np.ndarray]:
    """c_i of everybody who has trained."""
    found = {}
    for client, contact in session.record.contacts.items():
        state = session.store.load(client).memories[contact.ack].state
        found[client] = state.control.values
    return found


def assert_mean(session: Session, weighting: str = "weighted") -> None:
    """c = sum alpha_i c_i, or the plain mean over all clients."""
    n = session.federation.examples
    shares = n / n.sum() if weighting == "weighted" else np.full(len(n), 1 / len(n))
    mean = sum(shares[client] * control for client, control in controls(session).items())
    np.testing.assert_allclose(session.record.state.control.values, mean, rtol=1e-11, atol=1e-13)


# by hand


def test_two_rounds_by_hand() -> None:
    """Client 0: F = 1/2 w^2, 10 examples; client 1: F = 1/2 (w - 4)^2, 30 examples; one step of 0.5 each."""
    size = 12
    federation = QuadraticFederation(
        curvatures=np.ones((2, size)),
        optima=np.array([[0.0] * size, [4.0] * size]),
        examples=np.array([10, 30]),
        steps=np.array([1, 1]),
        means=np.zeros((2, 3)),
        variances=np.ones((2, 3)),
        training=QuadraticTraining(lr=0.5),
        has_buffers=False,
    )
    session = federation.play(build("scaffold"), 2, Setting(cohort=2))
    w = federation.initial.weights.values
    # round 1, controls zero: dy_0 = -w/2, dy_1 = -(w - 4)/2; w1 = w - w/2 + 3/4 * 2 = w/2 + 1.5
    # c_0 = w, c_1 = w - 4, c = w/4 + 3(w - 4)/4 = w - 3
    first = w / 2 + 1.5
    np.testing.assert_allclose(session.models[1].weights.values, first, rtol=1e-13)
    # round 2: both steps use gradient - c_i + c = w1 - 3 for either client, so w2 = w1 - (w1 - 3)/2
    np.testing.assert_allclose(session.models[2].weights.values, first / 2 + 1.5, rtol=1e-12)
    # one step: c_i is the gradient at w1; c = w1 - 3
    np.testing.assert_allclose(controls(session)[0], first, rtol=1e-12)
    np.testing.assert_allclose(controls(session)[1], first - 4, rtol=1e-12)
    np.testing.assert_allclose(session.record.state.control.values, first - 3, rtol=1e-12)


def test_effective_steps_by_hand() -> None:
    # beta 0.5, three steps: 1.75 + 1.5 + 1 = 4.25
    assert effective_steps(3, 0.5) == 4.25
    assert effective_steps(7, 0.0) == 7
    assert effective_steps(0, 0.9) == 0
    # K_eff / K is 2.26 at 4 steps, 7.13 at 30, 9.10 at 100 for momentum 0.9
    assert [round(effective_steps(steps, 0.9) / steps, 2) for steps in (4, 30, 100)] == [2.26, 7.13, 9.1]


# identities


@pytest.mark.parametrize("options", [{"option": "I"}, {"option": "II"}, {"wire": "derived"}, {"momentum": "outside"}])
def test_the_first_round_is_fedavgs_bit_for_bit(options: dict[str, Any]) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session, plain = (federation.play(method, 2) for method in (build("scaffold", **options), build("fedavg")))
    assert is_same(session.models[1], plain.models[1])
    assert not is_same(session.models[2], plain.models[2])


@pytest.mark.parametrize("ratio", [None, 0.3])
@pytest.mark.parametrize("weighting", ["weighted", "uniform"])
@pytest.mark.parametrize("options", [{"option": "I"}, {"option": "II"}, {"wire": "derived"}, {"momentum": "outside"}])
def test_the_servers_control_is_the_mean_of_all(options: dict[str, Any], weighting: str, ratio: float | None) -> None:
    session = Session(
        QuadraticFederation.draw(training=NOISY),
        made(ratio, ratio if options.get("wire") != "derived" else None, controls=weighting, **options),
        Setting(faults=RandomFaults(lost=0.2, late=0.2)),
    )
    for _ in range(8):
        session.advance(1)
        assert_mean(session, weighting)


def test_the_derived_wire_is_the_literal_one_with_half_the_uplink() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    literal, derived = (federation.play(build("scaffold", wire=wire), 5) for wire in ("literal", "derived"))
    for one, other in zip(literal.models, derived.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        literal.record.state.control.values, derived.record.state.control.values, rtol=1e-12, atol=1e-14
    )
    weights, model = (part.dense_bytes for part in (federation.schema.weights, federation.schema))
    for session, extra in ((literal, weights), (derived, 0)):
        up = [row for row in session.ledger.rows if row.direction == "up"]
        down = [row for row in session.ledger.rows if row.direction == "down"]
        assert {row.group_bytes() for row in up} == {model + extra}
        assert {row.group_bytes() for row in down} == {model + weights}
        assert {row.value_bytes for row in up} == {0 if session is literal else 4}


def test_the_new_control_is_the_mean_gradient_on_the_path() -> None:
    federation = QuadraticFederation.draw(training=replace(NOISY, momentum=0.0))
    session = federation.play(build("scaffold"), 4)
    problem = problem_of(federation, 4)
    steps = scaffold(problem, Options())
    before = steps[2]
    for i in problem.cohorts[3]:
        shift = before.control - before.own.get(i, 0.0)
        _, _, met = local_path(problem, i, 4, before.weights, before.statistics, shift, True)
        np.testing.assert_allclose(controls(session)[i], np.mean(met, axis=0), rtol=1e-10, atol=1e-12)


def test_identical_clients_need_no_correction() -> None:
    federation = QuadraticFederation.draw(4)
    names = ("curvatures", "optima", "steps", "means", "variances")
    federation = replace(federation, **{name: np.repeat(getattr(federation, name)[:1], 4, 0) for name in names})
    session, plain = (federation.play(build(name), 5, Setting(cohort=4)) for name in ("scaffold", "fedavg"))
    np.testing.assert_allclose(session.model.weights.values, plain.model.weights.values, rtol=1e-12)
    for control in controls(session).values():
        np.testing.assert_allclose(control, session.record.state.control.values, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("options", [{"option": "I"}, {"option": "II"}, {"wire": "derived"}])
def test_ratio_one_is_dense_bit_for_bit(options: dict[str, Any]) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    whole = made(1.0, 1.0 if "wire" not in options else None, **options)
    assert is_same(federation.play(whole, 4).model, federation.play(build("scaffold", **options), 4).model)


def test_a_client_without_steps_changes_no_control() -> None:
    federation = QuadraticFederation.draw(3)
    federation = replace(federation, steps=np.array([0, 3, 3]))
    for wire in ("literal", "derived"):
        session = federation.play(build("scaffold", wire=wire), 3, Setting(cohort=3))
        assert not controls(session)[0].any()
        assert_mean(session)


def test_a_number_that_is_none_changes_no_control() -> None:
    federation = QuadraticFederation.draw(2, has_buffers=False)
    server = build("scaffold", wire="derived").server
    state = server.init(federation.initial, federation.population)
    update = to_groups(federation.initial, "update")
    for number in (float("nan"), float("inf"), "0.1", 1e30, -1.0):
        conversation = server.round(state, federation.cohort(1, 2))
        next(conversation)
        with pytest.raises(StopIteration) as finished:
            conversation.send({0: Message("update", update, {"per_step": number})})
        assert is_equal(finished.value.value[0].control, state.control)


# optima


def optimum(federation: QuadraticFederation, shares: np.ndarray) -> np.ndarray:
    """argmin sum share_i F_i."""
    weights = shares[:, None] * federation.curvatures
    best: np.ndarray = (weights * federation.optima).sum(0) / weights.sum(0)
    return best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "options", "num_rounds"),
    [
        (QuadraticTraining(lr=0.2), {"option": "I"}, 110),
        (QuadraticTraining(lr=0.2), {"option": "II"}, 110),
        (QuadraticTraining(lr=0.2), {"wire": "derived"}, 110),
        (QuadraticTraining(lr=0.06, momentum=0.9), {"option": "II"}, 160),
        (QuadraticTraining(lr=0.06, momentum=0.9), {"option": "I"}, 160),
    ],
    ids=["I", "II", "derived", "II momentum", "I momentum"],
)
def test_partial_participation_reaches_the_optimum_where_fedavg_does_not(
    training: QuadraticTraining, options: dict[str, Any], num_rounds: int
) -> None:
    federation = QuadraticFederation.draw(5, training, has_buffers=False)
    best = optimum(federation, federation.examples / federation.examples.sum())
    session = federation.play(build("scaffold", **options), num_rounds)
    assert np.abs(session.model.weights.values - best).max() < 1e-10
    plain = federation.play(build("fedavg"), 30)
    assert np.abs(plain.model.weights.values - best).max() > 0.1


@pytest.mark.slow
def test_uniform_controls_lead_to_the_optimum_of_the_uniform_objective() -> None:
    federation = QuadraticFederation.draw(5, QuadraticTraining(lr=0.2), has_buffers=False)
    found = federation.play(build("scaffold", controls="uniform"), 110).model.weights.values
    assert np.abs(found - optimum(federation, np.full(5, 1 / 5))).max() < 1e-10
    assert np.abs(found - optimum(federation, federation.examples / federation.examples.sum())).max() > 1e-3


@pytest.mark.slow
def test_outside_the_buffer_clients_count_by_their_amplification() -> None:
    """The control of a client carries K_eff / K, so with unequal steps another objective is minimised.

    The fixed point is the optimum of sum alpha_i (K_eff,i / K_i) F_i but for terms of the size of the learning rate,
    because the local path wanders before it comes back; inside the buffer it stands still.
    """
    federation = QuadraticFederation.draw(4, QuadraticTraining(lr=0.02, momentum=0.9), has_buffers=False)
    shares = federation.examples / federation.examples.sum()
    for steps, is_amplified in ((federation.steps, True), (np.full(4, 4), False)):
        problem = replace(federation, steps=steps)
        amplified = shares * [effective_steps(int(number), 0.9) / number for number in steps]
        found = problem.play(build("scaffold", momentum="outside"), 150, Setting(cohort=4)).model.weights.values
        assert 1e-4 < np.abs(found - optimum(problem, amplified / amplified.sum())).max() < 0.03
        assert bool(np.abs(found - optimum(problem, shares)).max() > 0.2) is is_amplified


@pytest.mark.slow
def test_dividing_by_k_inside_the_buffer_diverges() -> None:
    training = QuadraticTraining(lr=0.02, momentum=0.9)
    federation = replace(QuadraticFederation.draw(5, training), steps=np.full(5, 30))
    stable = federation.play(build("scaffold"), 20)
    assert np.abs(stable.model.weights.values).max() < 10
    wrong = scaffold(problem_of(federation, 20), Options(wrong="plain K"))
    assert np.abs(wrong[-1].weights).max() > 1e3
    assert np.abs(wrong[-1].weights).max() > 10 * np.abs(wrong[-5].weights).max()


# the reference, and the mistakes of public code


VARIANTS: dict[str, tuple[dict[str, Any], Options]] = {
    "option I": ({"option": "I"}, Options("I")),
    "option II": ({}, Options()),
    "outside": ({"momentum": "outside"}, Options(inside=False)),
    "uniform": ({"controls": "uniform"}, Options(weighted=False)),
    "server_lr": ({"server_lr": 0.7}, Options(eta_g=0.7)),
    "derived": ({"wire": "derived"}, Options(derived=True)),
    "top_k": ({"update": 0.4}, Options(ratio=0.4)),
    "top_k twice": ({"update": 0.4, "control": 0.3}, Options(ratio=0.4, control_ratio=0.3)),
    "derived top_k": ({"update": 0.4, "wire": "derived"}, Options(derived=True, ratio=0.4)),
}


def assert_is(session: Session, options: Options) -> None:
    wanted = scaffold(problem_of(session.federation, session.round_number), options)
    for model, step in zip(session.models[1:], wanted, strict=True):
        assert_close(model, step.weights, step.statistics, step.counter)
    np.testing.assert_allclose(session.record.state.control.values, wanted[-1].control, rtol=1e-11, atol=1e-13)
    for client, control in controls(session).items():
        np.testing.assert_allclose(control, wanted[-1].own[client], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_reference(variant: str) -> None:
    given, options = VARIANTS[variant]
    assert_is(QuadraticFederation.draw(training=NOISY).play(made(**given), 6), options)


@pytest.mark.parametrize(
    ("variant", "wrong"),
    [
        ("option II", "no fraction"),
        ("option II", "minus c"),
        ("option II", "weights"),
        ("option II", "plain K"),
        ("derived top_k", "undecoded"),
        ("top_k twice", "undecoded"),
    ],
)
def test_the_mistakes_of_public_code_are_not_ours(variant: str, wrong: str) -> None:
    given, options = VARIANTS[variant]
    session = QuadraticFederation.draw(training=NOISY).play(made(**given), 6)
    with pytest.raises(AssertionError):
        assert_is(session, replace(options, wrong=wrong))


def test_a_control_from_the_undecoded_update_would_part_the_two_ends() -> None:
    problem = problem_of(QuadraticFederation.draw(training=NOISY), 6)
    share = problem.examples / problem.examples.sum()
    right, wrong = (
        scaffold(problem, Options(derived=True, ratio=0.4, wrong=mistake))[-1] for mistake in ("", "undecoded")
    )
    for step, is_mean in ((right, True), (wrong, False)):
        mean = sum(share[i] * control for i, control in step.own.items())
        assert np.allclose(step.control, mean, rtol=1e-9) is is_mean


def test_full_participation_hides_the_missing_fraction() -> None:
    """Why the mistake survives in public code: with everybody in every round |S| / N is one."""
    problem = problem_of(QuadraticFederation.draw(training=NOISY), 4, cohort=8)
    right, wrong = (scaffold(problem, Options(wrong=mistake))[-1] for mistake in ("", "no fraction"))
    np.testing.assert_array_equal(right.weights, wrong.weights)


# memory and configuration


def test_a_lost_reply_leaves_the_control_where_it_was() -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    session = federation.play(build("scaffold"), 8, Setting(faults=RandomFaults(lost=0.3, late=0.2)))
    assert_mean(session)
    assert {event.outcome for event in session.ledger.events} == {"fresh", "lost"}


def test_the_control_is_dense_and_as_large_as_the_weights() -> None:
    session = QuadraticFederation.draw(4).play(made(0.3, 0.3), 3)
    size = session.schema.weights.size
    assert len(session.record.state.control.values) == size
    assert all(len(control) == size for control in controls(session).values())
    assert not session.record.state.control.is_sparse


def test_only_option_one_needs_a_gradient() -> None:
    assert Scaffold(option="I").needs.gradients
    assert not Scaffold().needs.gradients
    rows = QuadraticFederation.draw(4).play(build("scaffold", option="I"), 2).ledger.rows
    assert {row.work.proxy_gradients for row in rows if row.direction == "up"} == {1}


def test_impossible_pairs_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.wire: derived needs option: II .*got 'I'"):
        Scaffold(option="I", wire="derived")
    with pytest.raises(ConfigError, match=r"method\.momentum: outside needs option: II .*got 'I'"):
        Scaffold(option="I", momentum="outside")
    with pytest.raises(ConfigError, match=r"method\.server_lr must not be negative, got -1"):
        Scaffold(server_lr=-1)


def test_groups_that_may_have_a_link() -> None:
    assert Scaffold().uplink_groups == ("update", "control_change")
    assert Scaffold(wire="derived").uplink_groups == ("update",)
    assert Scaffold().downlink_groups == ("model", "control")


# one round of a convolutional network in float32


@pytest.mark.slow
@pytest.mark.parametrize("options", ["{option: I}", "{wire: derived}", "{momentum: outside}"])
def test_the_first_round_of_a_network_is_fedavgs_bit_for_bit(options: str, tmp_path: Path) -> None:
    plain = run(tiny("rounds.count=1"), tmp_path / "fedavg")
    mine = run(tiny("rounds.count=1", f"method={{name: scaffold, {options[1:-1]}}}"), tmp_path / "scaffold")
    assert results(mine)["model"] == results(plain)["model"]


@pytest.mark.slow
def test_both_wires_train_a_network_alike(tmp_path: Path) -> None:
    literal, derived = (
        run(tiny(f"method={{name: scaffold, wire: {wire}}}"), tmp_path / wire) for wire in ("literal", "derived")
    )
    assert results(literal)["model"] == results(derived)["model"]
    weights = 4 * literal.provenance["parameters"]
    for boundary, per_client in (("update_fields", weights), ("all_fields", weights - 4)):
        one, other = (directory.traffic()[boundary].up.sum() for directory in (literal, derived))
        assert one - other == 4 * 3 * per_client  # four rounds of three clients


@pytest.mark.slow
def test_links_of_both_groups_are_configured_by_name(tmp_path: Path) -> None:
    config = tiny("method=scaffold", uplink={"update": top_k(0.2), "control_change": top_k(0.2)})
    traffic = run(config, tmp_path / "run").traffic()["update_fields"]
    assert 0.4 < traffic.saving("up") < 0.6
    with pytest.raises(ConfigError, match=r"uplink\.control_change: method scaffold sends no such group"):
        tiny("method={name: scaffold, wire: derived}", uplink={"control_change": top_k(0.2)})
