"""GradSkip: a round by hand, the identities of its card, the paper's recursion, and the gradients it saves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.corrections import Correction
from fedreuse.core.errors import ConfigError
from fedreuse.core.local_trainer import LocalTrainer
from fedreuse.core.message import Message
from fedreuse.core.method import Method
from fedreuse.core.model import Model, difference
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors, scale
from fedreuse.methods.gradskip import GradSkip, GradSkipClient
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, top_k
from tests.methods.test_proxskip import EVERYBODY, exact_problem, federation, lengths, optimum, problem_of, shifts
from tests.references.proxskip import paper, partial
from tests.tiny import results, tiny


def stops(seed: int, q: float, num_rounds: int, num_clients: int) -> dict[tuple[int, int], int]:
    """L of every round and client, from the clients' own streams."""
    return {
        (t, i): int(stream(seed, "stop", t, i).geometric(1 - q))
        for t in range(1, num_rounds + 1)
        for i in range(num_clients)
    }


def num_gradients(session: Session) -> int:
    return sum(row.work.training_steps for row in session.ledger.rows)


# by hand


def test_a_client_that_stops_at_once_by_hand() -> None:
    # one client, F = 1/2 w^2, lr 0.1, p = 1/2; q = 0: the coin falls at the first step, whatever K is.
    # h' = w, x = w, sent u = -(lr / p) (h' - 0) = -0.2 w: w1 = 0.8 w; h = 5 (-0.2 w + 0.2 w) = 0, the sum over one
    played = QuadraticFederation(
        curvatures=np.ones((1, 12)), optima=np.zeros((1, 12)), examples=np.array([9]), steps=np.array([1]),
        means=np.zeros((1, 3)), variances=np.ones((1, 3)), training=QuadraticTraining(lr=0.1), has_buffers=False,
    )  # fmt: skip
    session = played.play(build("gradskip", p=0.5, q=0.0), 2, Setting(cohort=1))
    w = played.initial.weights.values
    np.testing.assert_allclose(session.models[1].weights.values, 0.8 * w, rtol=1e-13)
    np.testing.assert_allclose(session.models[2].weights.values, 0.64 * w, rtol=1e-12)
    np.testing.assert_allclose(shifts(session)[0], 0, atol=1e-12)
    assert [row.work.training_steps for row in session.ledger.rows if row.direction == "up"] == [1, 1]


# identities


@pytest.mark.parametrize("mode", ["faithful", "partial"])
def test_with_q_one_it_is_proxskip_bit_for_bit(mode: str) -> None:
    played = federation()
    setting = EVERYBODY if mode == "faithful" else Setting(cohort=3)
    mine = played.play(build("gradskip", p=0.3, q=1.0, mode=mode), 12, setting)
    theirs = played.play(build("proxskip", p=0.3, mode=mode), 12, setting)
    assert all(is_same(*pair) for pair in zip(mine.models, theirs.models, strict=True))
    assert num_gradients(mine) == num_gradients(theirs)
    assert all(np.array_equal(shifts(mine)[i], shifts(theirs)[i]) for i in shifts(mine))


@pytest.mark.slow
def test_the_weighted_sum_of_all_shifts_stays_zero() -> None:
    played = federation()
    alpha = played.examples / played.examples.sum()
    for mode, setting in (("faithful", EVERYBODY), ("partial", Setting(cohort=3))):
        session = Session(played, build("gradskip", p=0.3, q=0.6, mode=mode), setting)
        for _ in range(20):
            session.advance(1)
            assert np.abs(sum(alpha[i] * found for i, found in shifts(session).items())).max() < 1e-11


@pytest.mark.slow
def test_fewer_gradients_for_the_same_optimum_and_communication() -> None:
    played = federation()
    mine = played.play(build("gradskip", p=0.2, q=0.9), 200, EVERYBODY)
    theirs = played.play(build("proxskip", p=0.2), 200, EVERYBODY)
    for session in (mine, theirs):
        assert np.abs(session.model.weights.values - optimum(played)).max() < 1e-10
    # per client and round: E min(K, L) = 1 / (1 - q (1 - p)) = 1 / 0.28 = 3.57 instead of 1 / p = 5
    assert num_gradients(theirs) == 8 * sum(lengths(7, 0.2, 200))
    assert num_gradients(mine) / (8 * 200) == pytest.approx(1 / 0.28, rel=0.1)
    assert num_gradients(mine) < 0.75 * num_gradients(theirs)
    up = [sum(row.group_bytes() for row in session.ledger.rows if row.direction == "up") for session in (mine, theirs)]
    assert up[0] == up[1]


@pytest.mark.slow
def test_each_client_may_have_a_q_of_its_own() -> None:
    played = federation()
    chances = (1.0, 0.0, 0.5, 1.0, 0.9, 0.9, 1.0, 1.0)
    session = played.play(build("gradskip", p=0.2, q=chances), 60, EVERYBODY)
    steps = {i: sum(row.work.training_steps for row in session.ledger.rows if row.client == i) for i in range(8)}
    assert steps[0] == steps[3] == sum(lengths(7, 0.2, 60))
    assert steps[1] == 60  # stops at the first step of every round: one gradient
    assert 60 < steps[2] < steps[4] < steps[0]
    assert np.abs(session.model.weights.values - optimum(played)).max() < 0.1
    said = {
        (crossing.client, crossing.envelope.values["q"])
        for crossing in session.crossings
        if crossing.direction == "down"
    }
    assert said == set(enumerate(chances))


@pytest.mark.slow
def test_weight_decay_is_part_of_the_gradient_that_becomes_the_shift() -> None:
    # the optimum of F + 0.05 |w|^2; a shift without the decay would pull the fixed point away
    played = federation(training=QuadraticTraining(lr=0.3, weight_decay=0.1))
    session = played.play(build("gradskip", p=0.3, q=0.7), 250, EVERYBODY)
    alpha = (played.examples / played.examples.sum())[:, None]
    wanted = (alpha * played.curvatures * played.optima).sum(0) / ((alpha * played.curvatures).sum(0) + 0.1)
    assert np.abs(session.model.weights.values - wanted).max() < 1e-10


# traps


@dataclass(frozen=True)
class _Truncated(GradSkipClient):
    """Stops early, but leaves its shift as it was: what a mere shorter training would do."""

    def train(self, received: Model, shift: Tensors, request: Message, trainer: LocalTrainer) -> tuple[Model, float]:
        stop = int(trainer.rng("stop").geometric(1 - request.values["q"]))
        steps = min(stop, request.values["steps"])
        trained = trainer.train(received, Correction(shift=scale(shift, -1)), steps)
        return difference(trained.model, received), self.rate(trained, request.values["steps"])


@pytest.mark.slow
def test_stopping_without_taking_the_gradient_for_the_shift_is_another_method() -> None:
    played = federation()
    right = build("gradskip", p=0.2, q=0.9)
    wrong = Method(right.server, _Truncated(0.2, "faithful"))
    reference = paper(exact_problem(played), 0.2, lengths(7, 0.2, 10), stops(7, 0.9, 10, 8))[-1][0]
    sessions = [Session(played, method, EVERYBODY).advance(10) for method in (right, wrong)]
    assert np.abs(sessions[0].model.weights.values - reference).max() < 1e-11
    assert np.abs(sessions[1].model.weights.values - reference).max() > 1e-3


# the references


def test_equals_the_paper_step_by_step() -> None:
    played = federation()
    session = Session(played, build("gradskip", p=0.2, q=0.8), EVERYBODY)
    coins = stops(7, 0.8, 15, 8)
    wanted = paper(exact_problem(played), 0.2, lengths(7, 0.2, 15), coins)
    stopped = [coins[t, i] <= length for t, length in enumerate(lengths(7, 0.2, 15), start=1) for i in range(8)]
    assert any(stopped)
    assert not all(stopped)
    for weights, found, gradients in wanted:
        session.advance(1)
        np.testing.assert_allclose(session.model.weights.values, weights, rtol=1e-11, atol=1e-11)
        for client, shift in shifts(session).items():
            np.testing.assert_allclose(shift, found[client], rtol=1e-10, atol=1e-10)
        assert num_gradients(session) == gradients


def test_the_heuristic_equals_the_reference() -> None:
    played = QuadraticFederation.draw(6, replace(NOISY, momentum=0.7))
    session = played.play(build("gradskip", p=0.25, q=0.7, mode="partial"), 7)
    coins = stops(played.seed, 0.7, 7, 6)
    wanted = partial(problem_of(played, 7, 3, 4), 4, coins)
    for model, (weights, statistics, counter) in zip(session.models[1:], wanted, strict=True):
        assert_close(model, weights, statistics, counter)
    stopped = [coins[t, i] < 4 for t in range(1, 8) for i in played.cohort(t, 3).clients]
    assert any(stopped)
    assert not all(stopped)


@pytest.mark.slow
def test_the_heuristic_reaches_the_optimum_with_cohorts_and_fewer_gradients() -> None:
    played = federation(training=QuadraticTraining(lr=0.1))
    session = played.play(build("gradskip", p=0.2, q=0.8, mode="partial"), 300, Setting(cohort=4))
    assert np.abs(session.model.weights.values - optimum(played)).max() < 1e-9
    # E min(5, L) = (1 - 0.8^5) / 0.2 = 3.36 of 5
    assert num_gradients(session) / (4 * 300) == pytest.approx(3.36, rel=0.1)


@pytest.mark.slow
def test_even_a_lossy_link_reaches_the_optimum() -> None:
    # what is sent fades away, and the shifts follow what the server decoded
    played = federation()
    session = played.play(build("gradskip", top_k(0.5), p=0.3, q=0.8), 200, EVERYBODY)
    alpha, found = played.examples / played.examples.sum(), shifts(session)
    assert np.abs(sum(alpha[i] * found[i] for i in range(8))).max() < 1e-11
    assert np.abs(session.model.weights.values - optimum(played)).max() < 1e-10


# what is refused


def test_momentum_and_cohorts_are_refused_in_faithful_mode() -> None:
    with pytest.raises(ConfigError, match=r"round 1 has 3 of 8"):
        federation().play(build("gradskip"), 1, Setting(cohort=3))
    with pytest.raises(ConfigError, match=r"local\.optimizer\.momentum is 0\.9"):
        federation(training=QuadraticTraining(momentum=0.9)).play(build("gradskip", q=0.0), 1, EVERYBODY)
    assert GradSkip().needs.full_participation


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.p must be in \(0, 1\], got 0"):
        GradSkip(p=0.0)
    for q in (-0.1, 1.1, (0.5, 2.0)):
        with pytest.raises(ConfigError, match=r"method\.q must be in \[0, 1\]"):
            GradSkip(q=q)
    with pytest.raises(ConfigError, match=r"method\.q has 3 numbers for 8 clients; give one for each"):
        federation().play(build("gradskip", q=(0.5, 0.5, 0.5)), 1, EVERYBODY)


# a network in float32, through the real run


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["faithful", "partial"])
def test_on_a_network_q_one_is_proxskip_bit_for_bit(mode: str, tmp_path: Path) -> None:
    sides = {}
    for method in ({"name": "gradskip", "q": 1.0}, {"name": "proxskip"}):
        config = tiny(
            method={**method, "p": 0.5, "mode": mode},
            local={"optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9 if mode == "partial" else 0.0}},
            rounds={"count": 3, "cohort": 3 if mode == "partial" else 6},
            accept_approximation=mode == "partial",
        )
        sides[method["name"]] = results(run(config, tmp_path / method["name"]))["model"]
    assert sides["gradskip"] == sides["proxskip"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gradskip", "proxskip"])
@pytest.mark.parametrize("mode", ["faithful", "partial"])
def test_a_cosine_that_ends_at_zero(name: str, mode: str, tmp_path: Path) -> None:
    # the last round's learning rate is exactly 0: nothing is divided by it, and nothing moves
    own = {"q": 0.5} if name == "gradskip" else {}
    models = []
    for count in (2, 3):
        config = tiny(
            method={"name": name, "p": 0.5, "mode": mode, **own},
            local={
                "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.0},
                "lr_schedule": {"name": "cosine", "rounds": 3},
            },
            rounds={"count": count, "cohort": 6},
        )
        models.append(results(run(config, tmp_path / str(count)))["model"])
    weights = [key for key in models[0] if "running" not in key and "num_batches" not in key]
    assert all(models[0][key] == models[1][key] for key in weights)


def test_a_cohort_runs_only_if_the_approximation_is_accepted() -> None:
    with pytest.raises(ConfigError, match=r"method gradskip needs every client in every round"):
        tiny(method={"name": "gradskip", "mode": "partial"})
    tiny(method={"name": "gradskip", "mode": "partial"}, accept_approximation=True)
