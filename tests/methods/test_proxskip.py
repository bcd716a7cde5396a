"""ProxSkip: a round by hand, the identities of its card, the paper's recursion, the heuristic for cohorts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.local_trainer import LocalTrainer, Trained
from fedreuse.core.message import Message
from fedreuse.core.method import Method
from fedreuse.core.randomness import stream
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.methods.proxskip import ProxSkip, ProxSkipClient, Shift, finish
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.local import Problem
from tests.references.proxskip import paper, partial

EXACT = QuadraticTraining(lr=0.3)
EVERYBODY = Setting(cohort=8)


def federation(**changes: object) -> QuadraticFederation:
    return replace(QuadraticFederation.draw(training=EXACT, has_buffers=False), **changes)


def lengths(seed: int, p: float, num_rounds: int) -> list[int]:
    """K of every round, from the cohort's stream."""
    return [int(stream(seed, "local steps", t).geometric(p)) for t in range(1, num_rounds + 1)]


def problem_of(played: QuadraticFederation, num_rounds: int, cohort: int, steps: int) -> Problem:
    """Plain arrays, with noise for as many steps as are taken here."""
    return plain_problem(replace(played, steps=np.full(len(played.examples), steps)), num_rounds, cohort)


def exact_problem(played: QuadraticFederation) -> Problem:
    """Plain arrays without buffers and noise."""
    return plain_problem(replace(played, has_buffers=True), 0, len(played.examples))


def optimum(played: QuadraticFederation) -> np.ndarray:
    alpha = (played.examples / played.examples.sum())[:, None]
    return (alpha * played.curvatures * played.optima).sum(0) / (alpha * played.curvatures).sum(0)


def shifts(session: Session) -> dict[int, np.ndarray]:
    """h_i of every client, finished with the model as it is now."""
    state = session.record.state
    found = {}
    for client, contact in session.record.contacts.items():
        pending = session.store.load(client).memories[contact.ack].state
        found[client] = finish(pending, state.model.weights, state.num_moves).values
    return found


# by hand


def test_two_rounds_by_hand() -> None:
    # two clients of equal weight, F_0 = 1/2 (w - 2)^2, F_1 = 3/2 (w + 2)^2, lr 0.1, p = 1/2, K = 1 in both rounds
    played = QuadraticFederation(
        curvatures=np.array([[1.0] * 12, [3.0] * 12]), optima=np.array([[2.0] * 12, [-2.0] * 12]),
        examples=np.array([10, 10]), steps=np.array([9, 9]), means=np.zeros((2, 3)), variances=np.ones((2, 3)),
        training=QuadraticTraining(lr=0.1), has_buffers=False, seed=_seed_with([1, 1], 0.5),
    )  # fmt: skip
    session = played.play(build("proxskip", p=0.5), 2, Setting(cohort=2))
    w = played.initial.weights.values
    # round 1, h = 0: x_0 = w - 0.1 (w - 2) = 0.9 w + 0.2, x_1 = w - 0.3 (w + 2) = 0.7 w - 0.6; w' = 0.8 w - 0.2
    w1 = 0.8 * w - 0.2
    np.testing.assert_allclose(session.models[1].weights.values, w1, rtol=1e-13)
    # h_0 = (0.5 / 0.1) (w' - x_0) = 5 (-0.1 w - 0.4) = -0.5 w - 2, h_1 = 5 (0.1 w + 0.4) = 0.5 w + 2
    # round 2: x_0 = w' - 0.1 (w' - 2 - h_0), x_1 = w' - 0.1 (3 w' + 6 - h_1); w'' = their mean, the shifts cancel
    x0, x1 = w1 - 0.1 * (w1 - 2 - (-0.5 * w - 2)), w1 - 0.1 * (3 * w1 + 6 - (0.5 * w + 2))
    np.testing.assert_allclose(session.models[2].weights.values, (x0 + x1) / 2, rtol=1e-13)
    w2 = (x0 + x1) / 2
    np.testing.assert_allclose(shifts(session)[0], (-0.5 * w - 2) + 5 * (w2 - x0), rtol=1e-12)


def _seed_with(wanted: list[int], p: float) -> int:
    """A seed whose coin falls as the sum above says."""
    return next(seed for seed in range(1000) if lengths(seed, p, len(wanted)) == wanted)


def test_a_missed_broadcast_counts_as_the_mean_of_the_moves() -> None:
    # two moves since w_then: h = (what waits) + rate * (w - w_then) / 2
    then, now = (QuadraticFederation.draw(seed=seed).initial.weights for seed in (1, 2))
    waiting = Shift(then, 3.0, then, 5)
    np.testing.assert_allclose(
        finish(waiting, now, 7).values, then.values + 1.5 * (now.values - then.values), rtol=1e-14
    )
    np.testing.assert_array_equal(finish(Shift(then), now, 7).values, then.values)  # finished already
    assert not finish(None, now, 7).values.any()


# identities


@pytest.mark.slow
def test_a_coin_that_always_falls_is_gradient_descent() -> None:
    played = federation()
    session = played.play(build("proxskip", p=1.0), 20, EVERYBODY)
    alpha, w = played.examples / played.examples.sum(), played.initial.weights.values
    for model in session.models[1:]:
        w = w - 0.3 * sum(a * c * (w - b) for a, c, b in zip(alpha, played.curvatures, played.optima, strict=True))
        np.testing.assert_allclose(model.weights.values, w, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_the_weighted_sum_of_all_shifts_stays_zero() -> None:
    played = federation()
    session = Session(played, build("proxskip", p=0.3), EVERYBODY)
    alpha = played.examples / played.examples.sum()
    for _ in range(30):
        session.advance(1)
        found = shifts(session)
        assert np.abs(sum(alpha[i] * found[i] for i in range(8))).max() < 1e-12
        assert max(np.abs(h).max() for h in found.values()) > 0.1


@pytest.mark.slow
def test_it_reaches_the_optimum_that_fedavg_misses() -> None:
    played = federation()
    session = played.play(build("proxskip", p=0.3), 120, EVERYBODY)
    wanted = optimum(played)
    assert np.abs(session.model.weights.values - wanted).max() < 1e-10
    # at the optimum every shift is the client's own gradient
    for client, found in shifts(session).items():
        np.testing.assert_allclose(found, played.curvatures[client] * (wanted - played.optima[client]), atol=1e-9)
    theirs = played.play(build("fedavg"), 120, EVERYBODY)
    assert np.abs(theirs.models[-1].weights.values - theirs.models[-2].weights.values).max() < 1e-10
    assert np.abs(theirs.model.weights.values - wanted).max() > 1e-2


def test_without_the_shift_it_is_fedavg_and_misses() -> None:
    # the first round has no shifts: FedAvg with as many steps
    played = federation(steps=np.full(8, lengths(7, 0.3, 1)[0]))
    mine, theirs = played.play(build("proxskip", p=0.3), 1, EVERYBODY), played.play(build("fedavg"), 1, EVERYBODY)
    assert is_same(mine.model, theirs.model)


def test_a_wrong_sign_of_the_shift_diverges_from_the_paper() -> None:
    played = federation()
    right = paper(exact_problem(played), 0.3, lengths(7, 0.3, 6))
    session = played.play(build("proxskip", p=0.3), 6, EVERYBODY)
    wrong = _wrong(exact_problem(played), 0.3, lengths(7, 0.3, 6))
    assert np.abs(wrong - right[-1][0]).max() > 1e-2
    assert np.abs(session.model.weights.values - right[-1][0]).max() < 1e-12


def _wrong(problem: Problem, p: float, counts: list[int]) -> np.ndarray:
    """gradient + h instead of gradient - h."""
    alpha = problem.examples / problem.examples.sum()
    w, h = problem.weights, [np.zeros_like(problem.weights) for _ in alpha]
    for count in counts:
        points = []
        for i in range(len(alpha)):
            x = w
            for _ in range(count):
                x = x - problem.lr * (problem.curvatures[i] * (x - problem.optima[i]) + h[i])
            points.append(x)
        w = sum(a * x for a, x in zip(alpha, points, strict=True))
        h = [old + p / problem.lr * (w - x) for old, x in zip(h, points, strict=True)]
    return w


# the references


def test_equals_the_paper_step_by_step() -> None:
    played = federation()
    session = Session(played, build("proxskip", p=0.3), EVERYBODY)
    wanted = paper(exact_problem(played), 0.3, lengths(7, 0.3, 12))
    assert len(set(lengths(7, 0.3, 12))) > 3
    for weights, found, num_gradients in wanted:
        session.advance(1)
        np.testing.assert_allclose(session.model.weights.values, weights, rtol=1e-12, atol=1e-12)
        for client, shift in shifts(session).items():
            np.testing.assert_allclose(shift, found[client], rtol=1e-11, atol=1e-11)
        assert sum(row.work.training_steps for row in session.ledger.rows) == num_gradients


def test_the_heuristic_equals_the_reference() -> None:
    played = QuadraticFederation.draw(6, replace(NOISY, momentum=0.7))
    # clients 0 and 1 trained in these rounds, but their answer to the second exchange got lost
    missed = {(t, i) for t in (2, 3, 4) for i in (0, 1) if i in played.cohort(t, 3).clients}
    faults = Listed(tuple(ListedFault(t, i, "lost", 2) for t, i in missed))
    session = played.play(build("proxskip", p=0.25, mode="partial"), 8, Setting(faults=faults))
    wanted = partial(problem_of(played, 8, 3, 4), 4, missed=missed)
    for model, (weights, statistics, counter) in zip(session.models[1:], wanted, strict=True):
        assert_close(model, weights, statistics, counter)
    # not degenerate: somebody who missed a broadcast comes back after a round of absence
    returns = [
        next((later - t for later in range(t + 1, 9) if i in played.cohort(later, 3).clients), 0) for t, i in missed
    ]
    assert max(returns) > 1


@pytest.mark.slow
def test_the_heuristic_reaches_the_optimum_with_cohorts() -> None:
    # the weighted sum of the shifts stays zero, whoever is drawn: the mean of the cohort's u_i is the move
    played = federation(training=QuadraticTraining(lr=0.1), steps=np.full(8, 4))
    session = played.play(build("proxskip", p=0.25, mode="partial"), 400, Setting(cohort=3))
    alpha, found = played.examples / played.examples.sum(), shifts(session)
    assert np.abs(sum(alpha[i] * found[i] for i in range(8))).max() < 1e-12
    assert np.abs(session.model.weights.values - optimum(played)).max() < 1e-9
    theirs = played.play(build("fedavg"), 400, Setting(cohort=3))
    assert np.abs(theirs.model.weights.values - optimum(played)).max() > 0.1


@pytest.mark.slow
def test_with_momentum_the_heuristic_counts_effective_steps() -> None:
    training = QuadraticTraining(lr=0.02, momentum=0.8)
    played = federation(training=training)
    session = played.play(build("proxskip", p=0.2, mode="partial"), 400, Setting(cohort=4))
    assert np.abs(session.model.weights.values - optimum(played)).max() < 1e-9
    # K instead of K_eff: shifts too large by K_eff / K = 2.2, and the model runs away
    wrong = Method(session.method.server, _PlainSteps(0.2, "partial"))
    apart = Session(played, wrong, Setting(cohort=4)).advance(60)
    assert np.abs(apart.model.weights.values - optimum(played)).max() > 1


@dataclass(frozen=True)
class _PlainSteps(ProxSkipClient):
    """The normaliser that ignores momentum."""

    def rate(self, trained: Trained, steps: int) -> float:
        return 1 / (steps * trained.lr)


# lossy links, lost replies, resuming


@pytest.mark.slow
def test_under_a_lossy_link_the_shifts_still_sum_to_zero() -> None:
    # the own update counts as the server decoded it; had the client used its own, the sum would drift away
    played = federation()
    session = played.play(build("proxskip", top_k(0.5), p=0.3), 100, EVERYBODY)
    alpha, found = played.examples / played.examples.sum(), shifts(session)
    assert np.abs(sum(alpha[i] * found[i] for i in range(8))).max() < 1e-11
    assert np.abs(session.model.weights.values - optimum(played)).max() < 1e-10
    method = build("proxskip", top_k(0.5), p=0.3)
    naive = Method(method.server, _Undecoded(0.3, "faithful"), method.uplink)
    apart = Session(played, naive, EVERYBODY).advance(100)
    assert np.abs(sum(alpha[i] * found for i, found in shifts(apart).items())).max() > 1e-3
    assert np.abs(apart.model.weights.values - optimum(played)).max() > 1e-3


@dataclass(frozen=True)
class _Undecoded(ProxSkipClient):
    """Counts its update as it was meant, not as it arrived."""

    wants_delivered = False

    def answer(self, request: Message, state: Shift | None, trainer: LocalTrainer) -> tuple[Message, Shift]:
        reply, after = super().answer(request, state, trainer)
        return reply, super().settle(after, reply)

    def settle(self, state: Shift, delivered: Message) -> Shift:
        return state


def test_a_silent_round_is_no_move() -> None:
    # in round 3 nobody answers: the shifts wait, and the moves since are those that took place
    played = federation()
    nobody = Listed(tuple(ListedFault(3, client, "lost", 1) for client in range(8)))
    session = played.play(build("proxskip", p=0.3), 4, replace(EVERYBODY, faults=nobody))
    assert session.record.state.num_moves == 3
    counts = lengths(7, 0.3, 4)
    wanted = paper(exact_problem(played), 0.3, [counts[0], counts[1], counts[3]])
    np.testing.assert_allclose(session.model.weights.values, wanted[-1][0], rtol=1e-12)


@pytest.mark.slow
def test_faithful_runs_are_the_same_in_strict_mode_and_after_a_resume() -> None:
    played = federation()
    whole = played.play(build("proxskip", p=0.3), 6, EVERYBODY)
    strict = played.play(build("proxskip", p=0.3), 6, replace(EVERYBODY, executor=Serial("strict")))
    again = played.play(build("proxskip", p=0.3), 3, EVERYBODY).resumed().advance(3)
    assert is_same(whole.model, strict.model)
    assert is_same(whole.model, again.model)


# what crosses, and what is refused


def test_the_request_costs_two_numbers_more_than_fedavg() -> None:
    played = federation()
    session = played.play(build("proxskip", p=0.3), 2, EVERYBODY)
    assert {row.value_bytes for row in session.ledger.rows if row.direction == "down"} == {8}
    assert {row.value_bytes for row in session.ledger.rows if row.direction == "up"} == {0}
    said = [crossing.envelope.values for crossing in session.crossings if crossing.direction == "down"]
    assert {(values["steps"], values["move"]) for values in said} == set(zip(lengths(7, 0.3, 2), (0, 1), strict=True))


def test_the_mean_number_of_steps_is_one_over_p() -> None:
    counts = lengths(3, 0.1, 4000)
    assert min(counts) == 1
    assert np.mean(counts) == pytest.approx(10, rel=0.05)


def test_momentum_is_refused_in_faithful_mode() -> None:
    played = federation(training=QuadraticTraining(lr=0.1, momentum=0.9))
    with pytest.raises(ConfigError, match=r"momentum is 0\.9; set it to 0, or set method\.mode: partial"):
        played.play(build("proxskip"), 1, EVERYBODY)
    played.play(build("proxskip", mode="partial"), 1, EVERYBODY)


def test_a_cohort_is_refused_in_faithful_mode() -> None:
    with pytest.raises(ConfigError, match=r"round 1 has 3 of 8; set method\.mode: partial"):
        federation().play(build("proxskip"), 1, Setting(cohort=3))
    assert ProxSkip().needs.full_participation
    assert ProxSkip(mode="partial").needs.full_participation


@pytest.mark.parametrize("p", [0.0, 1.5, -0.1])
def test_values_out_of_range_are_refused(p: float) -> None:
    with pytest.raises(ConfigError, match=r"method\.p must be in \(0, 1\]"):
        ProxSkip(p=p)
