"""FedLUAR: rounds by hand, the identities of its card, blocks of rows, bytes, a straight-line reference."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Method, Scope
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, zeros
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.cnn import Cnn
from fedreuse.methods.fedluar import FedLuar, LuarServer, layers_of, probabilities, without
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting, quadratic_schema
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.fedluar import fedluar
from tests.tiny import results, tiny

SHAPES = {"body.weight": (3, 2), "fc.weight": (2, 2), "fc.bias": (2,)}
"""Two layers to recycle, of 6 and 4 coordinates, and a bias of 2, in the place of the quadratics' own tensors."""


class Layered(QuadraticFederation):
    """The same quadratics, with two tensors of more than one dimension."""

    @property
    def schema(self) -> ModelSchema:
        whole = quadratic_schema(self.has_buffers)
        return replace(
            whole, weights=Schema(tuple(TensorSpec(name, shape, "float64") for name, shape in SHAPES.items()))
        )


def recycled(session: Session) -> list[tuple[int, ...]]:
    """What each round's requests named."""
    said = {
        crossing.envelope.round_number: crossing.envelope.values.get("recycled", ())
        for crossing in session.crossings
        if crossing.direction == "down"
    }
    return [said[number] for number in sorted(said)]


def moves(session: Session) -> list[np.ndarray]:
    pairs = zip(session.models, session.models[1:], strict=False)
    return [after.weights.values - before.weights.values for before, after in pairs]


# by hand


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 w^2, one step of 0.1: round 1 sends all, w1 = 0.9 w, U = -0.1 w.
    # round 2 recycles both layers: they move by -0.1 w again, w2 = 0.8 w; the bias is sent: 0.81 w
    federation = Layered(
        curvatures=np.ones((1, 12)), optima=np.zeros((1, 12)), examples=np.array([9]), steps=np.array([1]),
        means=np.zeros((1, 3)), variances=np.ones((1, 3)), training=QuadraticTraining(lr=0.1), has_buffers=False,
    )  # fmt: skip
    session = federation.play(build("fedluar", delta_layers=2), 3, Setting(cohort=1))
    w = federation.initial.weights.values
    np.testing.assert_allclose(session.models[1].weights.values, 0.9 * w, rtol=1e-13)
    np.testing.assert_allclose(session.models[2].weights.values[:10], 0.8 * w[:10], rtol=1e-12)
    np.testing.assert_allclose(session.models[2].weights.values[10:], 0.81 * w[10:], rtol=1e-12)
    np.testing.assert_allclose(session.models[3].weights.values[:10], 0.7 * w[:10], rtol=1e-12)
    assert recycled(session) == [(), (0, 1), (0, 1)]
    # bytes: 12 float64, then the bias alone; the request names two layers
    assert [row.group_bytes("update") for row in session.ledger.rows if row.direction == "up"] == [96, 16, 16]
    assert [row.value_bytes for row in session.ledger.rows if row.direction == "down"] == [0, 8, 8]
    assert session.ledger.counts["recycled layers"] == 4


def test_scores_by_hand() -> None:
    # |D| = 0.1 |w| for both layers: score 0.1 (1e-6 aside); later layers that were recycled keep theirs
    session = _alone().play(build("fedluar", delta_layers=1), 1, Setting(cohort=1))
    np.testing.assert_allclose(session.record.state.scores, 0.1, rtol=1e-5)
    assert probabilities((0.1, 0.3)) == pytest.approx([0.75, 0.25])  # 10 : 3.33


def _alone() -> Layered:
    return Layered(
        curvatures=np.ones((1, 12)), optima=np.zeros((1, 12)), examples=np.array([9]), steps=np.array([1]),
        means=np.zeros((1, 3)), variances=np.ones((1, 3)), training=QuadraticTraining(lr=0.1), has_buffers=False,
    )  # fmt: skip


# identities


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("uplink", [None, top_k(0.4)], ids=["dense", "top_k"])
def test_without_recycling_it_is_fedavg_bit_for_bit(blocks: int, uplink: Any) -> None:
    federation = Layered.draw(training=NOISY)
    mine = federation.play(build("fedluar", uplink, delta_layers=0, blocks=blocks), 6)
    theirs = federation.play(build("fedavg", uplink), 6)
    assert all(is_same(*pair) for pair in zip(mine.models, theirs.models, strict=True))
    assert [row.total_bytes for row in mine.ledger.rows] == [row.total_bytes for row in theirs.ledger.rows]


def test_the_first_round_is_fedavg_bit_for_bit_and_the_second_is_not() -> None:
    federation = Layered.draw(training=NOISY)
    mine, theirs = federation.play(build("fedluar"), 2), federation.play(build("fedavg"), 2)
    assert is_same(mine.models[1], theirs.models[1])
    assert not is_same(mine.models[2], theirs.models[2])


def test_recycling_all_layers_moves_them_along_a_constant_direction() -> None:
    federation = Layered.draw(training=NOISY)
    session = Session(federation, build("fedluar", delta_layers=2), Setting())
    session.advance(1)
    first = session.record.state.last
    for _ in range(6):
        session.advance(1)
        np.testing.assert_array_equal(session.record.state.last.values[:10], first.values[:10])
    for move in moves(session):
        np.testing.assert_allclose(move[:10], first.values[:10], rtol=1e-12, atol=1e-15)
    # uplink: what is no layer, and nothing else
    later = [row for row in session.ledger.rows if row.direction == "up" and row.round_number > 1]
    assert {row.group_bytes("update") for row in later} == {2 * 8}


def test_a_recycled_layer_moves_exactly_as_before_and_the_others_do_not() -> None:
    federation = Layered.draw(training=NOISY)
    session = Session(federation, build("fedluar", delta_layers=1), Setting())
    places = {layer.number: layer.place for layer in layers_of(federation.schema.weights, 1)}
    drawn = Counter()
    for number in range(1, 16):
        before, scores = session.record.state.last, session.record.state.scores
        session.advance(1)
        now = recycled(session)[-1]
        assert len(now) == (number > 1)
        drawn.update(now)
        for layer, place in places.items():
            is_repeated = np.array_equal(session.record.state.last.values[place], before.values[place])
            assert is_repeated is (layer in now)
            if number > 1:
                order = list(places).index(layer)
                assert (session.record.state.scores[order] == scores[order]) is (layer in now)
    assert set(drawn) == {0, 1}  # not degenerate: each layer is recycled at some time


def test_probabilities_sum_to_one_and_favour_the_small() -> None:
    for scores in ((0.1, 0.2, 0.4), (0.0, 0.0, 1.0), (1e-9, 1e3), (5.0,)):
        chances = probabilities(scores)
        assert chances.sum() == pytest.approx(1, rel=1e-14)
        assert np.isfinite(chances).all()
        assert (np.diff(chances) <= 0).all()


@pytest.mark.slow
def test_draws_follow_the_probabilities() -> None:
    server = LuarServer(FedLuar(delta_layers=1))
    federation = Layered.draw(has_buffers=False)
    state = replace(server.init(federation.initial, federation.population), scores=(0.1, 0.3))
    drawn = Counter(server._draw(state, federation.cohort(number, 3))[0] for number in range(1, 2001))
    assert drawn[0] / 2000 == pytest.approx(0.75, abs=0.03)


def test_a_server_step_scales_fresh_and_recycled_alike() -> None:
    federation = Layered.draw(training=NOISY)
    session = federation.play(build("fedluar", delta_layers=2, server_lr=0.5), 3)
    for move in moves(session)[1:]:
        np.testing.assert_allclose(move[:10], moves(session)[0][:10], rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(move[:10], 0.5 * session.record.state.last.values[:10], rtol=1e-11, atol=1e-14)


# traps of public code


class _Wrong(LuarServer):
    """Versions of the merge that are wrong in one way each."""

    def __init__(self, config: FedLuar, how: str) -> None:
        super().__init__(config)
        object.__setattr__(self, "how", how)

    def _merge(self, state, mean, recycled):
        direction, scores = super()._merge(state, mean, recycled)
        if self.how == "forgets U":  # the zero of a recycled layer overwrites its last update
            return mean, scores
        if self.how == "renews all scores":
            return direction, super()._merge(replace(state, scores=None), direction, ())[1]
        return direction, scores

    def _draw(self, state, cohort):
        if self.how == "recycles in round 1" and state.scores is None:
            return (0,)
        return super()._draw(state, cohort)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "differs_after"), [("forgets U", 2), ("renews all scores", 8), ("recycles in round 1", 1), ("right", None)]
)
def test_wrong_versions_differ(how: str, differs_after: int | None) -> None:
    federation = Layered.draw(training=NOISY)
    config = FedLuar(delta_layers=1)
    right = federation.play(Method(*config.halves("dense")), 12)
    wrong = federation.play(Method(_Wrong(config, how), config.halves("dense")[1]), 12)
    same = [is_same(*pair) for pair in zip(right.models, wrong.models, strict=True)]
    if differs_after is None:
        assert all(same)
    else:
        assert not same[-1]
        assert False in same[: differs_after + 1]


def test_a_layer_that_stands_still_is_not_recycled() -> None:
    # one published version drops the recycled update (new = previous): the layer stands still, here it moves
    federation = Layered.draw(training=NOISY)
    session = federation.play(build("fedluar", delta_layers=2), 3)
    assert all(np.abs(move[:10]).min() > 0 for move in moves(session))


# blocks


def test_layers_and_blocks_by_hand() -> None:
    schema = Schema((
        TensorSpec("conv.weight", (2, 1, 3)), TensorSpec("conv.bias", (2,)), TensorSpec("fc.weight", (5, 4)),
        TensorSpec("out.weight", (2, 5)), TensorSpec("scale", ()),
    ))  # fmt: skip
    assert [(layer.number, layer.name, layer.place) for layer in layers_of(schema, 1)] == [
        (0, "conv.weight", slice(0, 6)), (2, "fc.weight", slice(8, 28)), (3, "out.weight", slice(28, 38)),
    ]  # fmt: skip
    # five rows of four in three blocks: rows 0; 1 and 2; 3 and 4
    blocks = [layer for layer in layers_of(schema, 3) if layer.name == "fc.weight"]
    assert [(layer.number, list(layer.rows), layer.place) for layer in blocks] == [
        (5, [0], slice(8, 12)), (6, [1, 2], slice(12, 20)), (7, [3, 4], slice(20, 28)),
    ]  # fmt: skip
    assert len(layers_of(schema, 16)) == 2 + 5  # never more blocks than rows
    weights = Tensors(schema, np.arange(schema.size, dtype=np.float32))
    layers = {layer.number: layer for layer in layers_of(schema, 3)}
    sent = without(weights, [layers[0], layers[5], layers[7]])
    assert [(spec.name, spec.shape, spec.rows) for spec in sent.schema] == [
        ("conv.bias", (2,), None), ("fc.weight", (2, 4), (1, 2)), ("out.weight", (2, 5), None), ("scale", (), None),
    ]  # fmt: skip
    np.testing.assert_array_equal(sent.values, [6, 7, *range(12, 20), *range(28, 39)])
    whole = without(weights, [layers[5], layers[6], layers[7]])
    assert "fc.weight" not in whole.schema.positions
    assert without(weights, []) is weights


def test_blocks_recycle_rows_of_the_largest_layer() -> None:
    federation = Layered.draw(training=NOISY)
    session = Session(federation, build("fedluar", delta_layers=2, blocks=3), Setting())
    places = {layer.number: layer.place for layer in layers_of(federation.schema.weights, 3)}
    assert places == {3: slice(0, 2), 4: slice(2, 4), 5: slice(4, 6), 1: slice(6, 10)}
    drawn = Counter()
    for number in range(1, 21):
        before = session.record.state.last
        session.advance(1)
        now = recycled(session)[-1]
        drawn.update(now)
        for layer, place in places.items():
            is_repeated = np.array_equal(session.record.state.last.values[place], before.values[place])
            assert is_repeated is (layer in now)
        # bytes: float64 of what is not recycled; a byte of marks and one of the mode where rows are missing
        up = [
            row.group_bytes("update")
            for row in session.ledger.rows
            if row.direction == "up" and row.round_number == number
        ]
        silent = sum(places[layer].stop - places[layer].start for layer in now)
        has_rows = 0 < len({3, 4, 5} & set(now)) < 3
        assert set(up) == {(12 - silent) * 8 + 2 * has_rows}
    assert set(drawn) == {1, 3, 4, 5}


def test_top_k_keeps_its_ratio_of_the_rows_that_are_sent() -> None:
    federation = Layered.draw(training=NOISY, has_buffers=False)
    session = federation.play(build("fedluar", top_k(0.5), delta_layers=1, blocks=3), 12)
    for crossing in session.crossings:
        if crossing.direction == "up":
            block = crossing.envelope.parcels["update"].blocks[0]
            now = recycled(session)[crossing.envelope.round_number - 1]
            # half of six coordinates; with a row of two recycled, half of the other four
            assert block.count == (2 if {3, 4, 5} & set(now) else 3)


# bytes


@pytest.mark.parametrize("uplink", [None, top_k(0.4)], ids=["dense", "top_k"])
def test_bytes_are_those_of_the_tensors_that_are_sent(uplink: Any) -> None:
    federation = Layered.draw(training=NOISY)
    session = federation.play(build("fedluar", uplink, delta_layers=1), 10)
    dense = federation.play(build("fedavg", uplink), 1)
    first = next(crossing for crossing in dense.crossings if crossing.direction == "up")
    sizes = [block.field_bytes for block in first.envelope.parcels["update"].blocks]
    for row in session.ledger.rows:
        if row.direction == "up":
            silent = recycled(session)[row.round_number - 1]
            assert row.group_bytes("update") == sum(
                size for position, size in enumerate(sizes) if position not in silent
            )


# configuration


def test_a_run_that_would_recycle_every_layer_for_ever_is_refused() -> None:
    scope = Scope(Layered.draw().schema, clients=6, cohort=3, rounds=7)
    with pytest.raises(
        ConfigError, match=r"delta_layers is 2, .* has 2 layers .*; set it below 2, or raise method\.blocks"
    ):
        Recipe(FedLuar(delta_layers=2)).resolved(scope)
    for fine in (FedLuar(delta_layers=1), FedLuar(delta_layers=2, blocks=3), FedLuar(delta_layers=0)):
        assert Recipe(fine).resolved(scope).method == fine


def test_more_layers_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"delta_layers is 3, but this network has 2 layers .*; set it to at most 2"):
        Layered.draw().play(build("fedluar", delta_layers=3), 1)
    Layered.draw().play(build("fedluar", delta_layers=3, blocks=3), 2)


@pytest.mark.parametrize(("field", "value"), [("delta_layers", -1), ("blocks", 0), ("server_lr", -0.5)])
def test_values_out_of_range_are_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{field} must.*got {value}"):
        FedLuar(**{field: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    "uplink",
    [
        {"name": "error_feedback", "codec": top_k(0.4)},
        {"name": "ef21", "codec": top_k(0.4)},
        {"name": "lbgm", "threshold": 0.7, "residual": True},
        "qsgd",
        "ternary",
    ],
    ids=lambda link: link if isinstance(link, str) else link["name"],
)
@pytest.mark.parametrize("blocks", [1, 3])
def test_what_is_recycled_is_the_same_under_any_link(uplink: Any, blocks: int) -> None:
    # whatever the link makes of the rest, a recycled layer repeats the last direction bit for bit
    federation = Layered.draw(training=NOISY)
    session = Session(federation, build("fedluar", uplink, delta_layers=1, blocks=blocks), Setting())
    places = {layer.number: layer.place for layer in layers_of(federation.schema.weights, blocks)}
    for _ in range(12):
        before = session.record.state.last
        session.advance(1)
        for layer in recycled(session)[-1]:
            np.testing.assert_array_equal(session.record.state.last.values[places[layer]], before.values[places[layer]])


def test_a_residual_waits_while_its_rows_are_recycled() -> None:
    # per client: all that arrived plus the residual is all that was sent, rows of recycled blocks aside
    federation = Layered.draw(6, NOISY)
    link = {"name": "error_feedback", "codec": top_k(0.4)}
    session = Session(federation, build("fedluar", link, delta_layers=2, blocks=3), Setting())
    places = {layer.number: layer.place for layer in layers_of(federation.schema.weights, 3)}
    residuals: dict[int, np.ndarray] = {}
    for _ in range(12):
        session.advance(1)
        for client in federation.cohort(session.round_number, 3).clients:
            memory = session.store.load(client).memories[session.record.contacts[client].ack]
            now = memory.uplink["update"].values
            for layer in recycled(session)[-1]:
                before = residuals.get(client, np.zeros(12))[places[layer]]
                np.testing.assert_array_equal(now[places[layer]], before)
            residuals[client] = now
    assert any(residual.any() for residual in residuals.values())


def test_a_network_of_layers_alone_can_be_recycled_whole() -> None:
    # nothing is left to send: the group is there, and empty
    schema = Schema((TensorSpec("a.weight", (2, 2), "float64"),))
    weights = Tensors(schema, np.arange(4, dtype=np.float64))
    sent = without(weights, layers_of(schema, 1))
    assert len(sent.schema) == 0
    model = Model(zeros(schema), zeros(Schema()), zeros(Schema()))
    assert is_equal(model.weights, zeros(schema))


# the reference


@pytest.mark.parametrize("uplink", [None, 0.4], ids=["dense", "top_k"])
@pytest.mark.parametrize(("delta", "blocks", "server_lr"), [(1, 1, 1.0), (2, 3, 1.0), (1, 3, 0.7), (2, 1, 1.0)])
def test_equals_the_reference(uplink: float | None, delta: int, blocks: int, server_lr: float) -> None:
    federation = Layered.draw(training=NOISY)
    link = None if uplink is None else top_k(uplink)
    session = Session(
        federation, build("fedluar", link, delta_layers=delta, blocks=blocks, server_lr=server_lr), Setting()
    )
    coins = [stream(federation.seed, "recycled layers", t) for t in range(1, 9)]
    problem = plain_problem(federation, 8, 3)
    wanted = fedluar(problem, list(SHAPES.values()), delta, blocks, coins, uplink, server_lr)
    for weights, statistics, counter, silent, last, scores in wanted:
        session.advance(1)
        assert_close(session.model, weights, statistics, counter)
        assert list(recycled(session)[-1]) == silent
        np.testing.assert_allclose(session.record.state.last.values, last, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(session.record.state.scores, scores, rtol=1e-11)


def test_bytes_of_the_cnn_by_hand() -> None:
    # kernels: 288, 18,432, 401,408 and 1,280 weights; the other 426 weights are always sent: 1,704 bytes
    schema = FlatNetwork(Cnn().build((1, 28, 28), 10)).schema.weights
    weights = zeros(schema)
    rng = np.random.default_rng(0)

    def sent(blocks: int, *numbers: int) -> int:
        left = without(weights, [layer for layer in layers_of(schema, blocks) if layer.number in numbers])
        return Dense().encode(left, schema, rng).field_bytes

    kernels = {layer.name: layer.number for layer in layers_of(schema, 1)}
    assert len(kernels) == 4
    first, second, third, last = kernels.values()
    assert sent(1) == 1_687_336
    assert sent(1, third) == 1_687_336 - 4 * 401_408 == 81_704
    assert sent(1, first, second, third, last) == 1_704
    # sixteen blocks of eight rows: 100,352 bytes each; 128 marks and one byte for the mode
    blocks = [layer.number for layer in layers_of(schema, 16)][2:18]
    assert blocks == list(range(len(schema), len(schema) + 16))
    assert sent(16, blocks[0]) == 1_687_336 - 100_352 + 16 + 1
    assert sent(16, *blocks[:10]) == 1_687_336 - 10 * 100_352 + 16 + 1
    assert sent(16, *blocks) == 81_704


# a network in float32, through the real run


@pytest.mark.slow
@pytest.mark.parametrize("update", [None, top_k(0.5)], ids=["dense", "top_k"])
def test_on_a_network_without_recycling_and_in_the_first_round_it_is_fedavg_bit_for_bit(
    update: Any, tmp_path: Path
) -> None:
    def model(label: str, count: int, **method: Any) -> dict[str, bytes]:
        config = tiny(method=method, uplink={"update": update} if update else {}, rounds={"count": count})
        return results(run(config, tmp_path / f"{label} {count}"))["model"]

    assert model("none", 3, name="fedluar", delta_layers=0, blocks=2) == model("fedavg", 3, name="fedavg")
    assert model("one", 1, name="fedluar", delta_layers=1, blocks=2) == model("fedavg", 1, name="fedavg")
    assert model("one", 3, name="fedluar", delta_layers=1, blocks=2) != results(tmp_path / "fedavg 3")["model"]
