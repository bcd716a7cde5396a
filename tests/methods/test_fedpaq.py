"""FedPAQ: a round by hand, FedAvg with finer levels, its bytes, and a straight-line reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.compression.codecs.qsgd import Qsgd
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.methods.aliases import FedPaq
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem
from tests.references.compressed import compressed_fedavg
from tests.references.qsgd import qsgd
from tests.tiny import tiny


def first_updates(federation: QuadraticFederation) -> dict[int, np.ndarray]:
    """What the clients of the first round find, before anything is rounded."""
    start = federation.initial
    trained = {i: federation.trainer(i, 1).train(start).model for i in federation.cohort(1, 3).clients}
    return {client: model.weights.values - start.weights.values for client, model in trained.items()}


def test_a_round_by_hand() -> None:
    # one client, F = 1/2 |w - b|^2, one step of 1/2: delta = -(w - b) / 2. With w - b = -2 everywhere delta = 1: every
    # coordinate is its bucket's largest, its level is the top one, and nothing is rounded: w + 1
    federation = QuadraticFederation.draw(1, QuadraticTraining(lr=0.5), has_buffers=False)
    start = federation.initial.weights.values
    federation = QuadraticFederation(
        curvatures=np.ones((1, 12)),
        optima=start[None] + 2,
        examples=np.array([4]),
        steps=np.array([1]),
        means=federation.means,
        variances=federation.variances,
        training=QuadraticTraining(lr=0.5),
        has_buffers=False,
    )
    session = federation.play(build("fedpaq", bits=2, bucket=12), 1, Setting(cohort=1))
    np.testing.assert_allclose(session.model.weights.values, start + 1, rtol=1e-14)
    # three tensors of 6, 4 and 2: a scale of 8 bytes each, 2 bits per coordinate: 2 + 1 + 1 bytes
    up = [row.group_bytes("update") for row in session.ledger.rows if row.direction == "up"]
    assert up == [3 * 8 + 4]


def test_buckets_of_one_are_fedavg_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    dense, exact = federation.play(build("fedavg"), 5), federation.play(build("fedpaq", bucket=1), 5)
    assert all(is_same(*pair) for pair in zip(exact.models, dense.models, strict=True))


def test_more_levels_approach_fedavg() -> None:
    # |Q(delta) - delta| <= scale / (2^(bits - 1) - 1): the distance falls with every bit
    federation = QuadraticFederation.draw(training=NOISY, has_buffers=False)
    dense = federation.play(build("fedavg"), 1)
    largest = max(np.abs(update).max() for update in first_updates(federation).values())
    away = [
        np.abs(federation.play(build("fedpaq", bits=bits), 1).model.weights.values - dense.model.weights.values).max()
        for bits in range(2, 9)
    ]
    assert all(distance <= largest / (2 ** (bits - 1) - 1) for bits, distance in zip(range(2, 9), away, strict=True))
    assert away[-1] < away[0] / 20


@pytest.mark.slow
def test_right_on_average_over_many_seeds() -> None:
    # the first round's step, averaged over the quantiser's draws alone, is FedAvg's
    federation = QuadraticFederation.draw(has_buffers=False)
    dense = federation.play(build("fedavg"), 1).model.weights.values
    updates = first_updates(federation)
    shares = federation.population.ratio_weights(updates)
    moves = np.array(
        [
            sum(
                shares[client] * qsgd(update, np.random.default_rng([number, client]).random(12), 2, 512)
                for client, update in updates.items()
            )
            for number in range(2000)
        ]
    )
    error = moves.std(0) / np.sqrt(2000)
    assert (np.abs(federation.initial.weights.values + moves.mean(0) - dense) <= 4 * error + 1e-12).all()


def test_it_remembers_nothing() -> None:
    session = QuadraticFederation.draw(training=NOISY).play(build("fedpaq"), 3)
    for client in session.record.contacts:
        record = session.store.load(client)
        assert all(memory.state is None and not memory.uplink for memory in record.memories.values())


def test_the_link_belongs_to_the_method() -> None:
    assert FedPaq(bits=3, bucket=64).default_uplink == {"update": Plain(Qsgd(3, 64))}


@pytest.mark.parametrize("fields", [{"bits": 1}, {"bits": 9}, {"bucket": 0}, {"server_lr": -1.0}])
def test_settings_that_cannot_be(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        FedPaq(**fields)


@pytest.mark.slow
def test_a_network_in_float32(tmp_path: Path) -> None:
    dense = run(tiny(), tmp_path / "fedavg")
    exact = run(tiny(method={"name": "fedpaq", "bucket": 1}), tmp_path / "exact")
    coarse = run(tiny(method={"name": "fedpaq"}), tmp_path / "fedpaq")
    assert exact.summary["model_digest"] == dense.summary["model_digest"]
    assert coarse.summary["model_digest"] != dense.summary["model_digest"]


@pytest.mark.parametrize("server_lr", [1.0, 0.7])
def test_equals_the_reference(server_lr: float) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedpaq", bits=3, bucket=4, server_lr=server_lr), 5)

    def compress(vector: np.ndarray, t: int, i: int) -> np.ndarray:
        return qsgd(vector, stream(federation.seed, "compression up update", t, i).random(len(vector)), 3, 4)

    wanted = compressed_fedavg(plain_problem(federation, 5, 3), compress, server_lr=server_lr)
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)
