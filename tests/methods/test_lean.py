"""Lean: a budget by hand, budget 1 is dense FedAvg, bytes as predicted and never more, errors, and a reference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from fedreuse.accounting.boundaries.boundary import boundary_of
from fedreuse.accounting.dense import dense_reference
from fedreuse.accounting.traffic import traffic
from fedreuse.compression.codecs.allot import Allot
from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.low_rank import LowRank
from fedreuse.compression.codecs.narrow import Narrow
from fedreuse.compression.links.broadcast import Broadcast
from fedreuse.compression.links.from_initial import FromInitial
from fedreuse.config.recipe import Recipe
from fedreuse.config.run_config import RunConfig, load
from fedreuse.core.errors import ConfigError
from fedreuse.core.local_trainer import Work
from fedreuse.core.method import Scope
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, to_dense
from fedreuse.engine.faults import RandomFaults
from fedreuse.engine.state.records import ClientRecord
from fedreuse.methods.aliases import FedAvg
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.buffered import Buffered
from fedreuse.methods.lean import Lean
from fedreuse.methods.server_steps.annealed import AnnealedStep
from fedreuse.methods.server_steps.damped import DampedStep
from fedreuse.methods.server_steps.momentum import MomentumStep
from fedreuse.methods.server_steps.moving_average import MovingAverageStep
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from fedreuse.runs.prediction import predict
from fedreuse.store.directory import RunDirectory
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting, quadratic_schema
from tests.federation import NOISY, assert_close, build, is_same, plain_problem
from tests.references.lean import lean
from tests.tiny import tiny

WEIGHTS = Schema((TensorSpec("fc.weight", (100, 1000)),))
SCOPE = Scope(ModelSchema(WEIGHTS), clients=50, cohort=10, rounds=60)
DIGITS: dict[str, Any] = {
    "task": {"name": "digits", "clients": 20, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "network": {"name": "mlp", "hidden": [256, 256]},
    "local": {"epochs": 1, "batch": 32},
    "rounds": {"count": 12, "cohort": 5, "evaluate_every": 12},
    "executor": {"name": "serial"},
    "seed": 1,
    "test": "sealed",
}


def codec_of(link: Any) -> Any:
    return link.codec


def first_of(link: Any) -> int:
    """Bytes of a first difference."""
    return int((link.codec if link.first is None else link.first).bytes)


def test_a_budget_by_hand() -> None:
    # dense: 400,000 bytes of numbers, about 50 of frame and header each way, so S is close to 800,100; a reply may take
    # 0.02 S / 4; 600 replies leave 0.02 * 600 S - 600 u for requests, and round 1 asks 10 clients for (almost) nothing.
    # Of the other 590, 45 may be first differences: 40 clients are asked late, and 5 may lose their state
    dense = dense_reference(SCOPE.schema)
    both = dense.request_bytes + dense.reply_bytes
    found = Lean(0.02).resolve(SCOPE)
    up, down = (codec_of(codec_of_link).bytes for codec_of_link in (found.uplink["update"], found.downlink["model"]))
    first = first_of(found.downlink["model"])
    header = 90
    assert 0 <= both * 0.02 / 4 - up < header
    assert 0 <= both * 0.02 * 3 / 4 * 600 - 545 * down - 45 * first < 590 * 2 * header
    assert 0 <= 0.9 * both * 0.02 * 3 / 4 * 600 / 590 - down < 2 * header  # nine tenths of the mean
    assert found.downlink["model"].start == "initial"  # type: ignore[attr-defined]
    assert found.method == Averaging(step=MovingAverageStep(0.7, DampedStep()))


def test_the_bytes_of_the_weights_by_hand() -> None:
    # dense messages of 400,048 and 400,050 bytes, 600 of each: 0.02 of them are 9,601,176 bytes. A reply: a quarter of
    # that / 600 = 4,000 bytes, of which 80 are not weights (15 of them the slope) and 2 are for a longer count. A mean
    # request: three quarters without 10 empty ones of 73 bytes, / 590 = 12,203.2. An ordinary one has nine tenths,
    # 10,983, less 73 and 4 (it has room for more than 65,535 coordinates), a first one (590 - 545 * 0.9) / 45 = 2.2111
    # means, 26,983, less 73 and 4
    found = Lean(0.02).resolve(SCOPE)
    reply, request = (codec_of(link) for link in (found.uplink["update"], found.downlink["model"]))
    assert (reply.bytes, request.bytes) == (4000 - 80 - 2, 10_983 - 73 - 4)
    assert first_of(found.downlink["model"]) == 26_983 - 73 - 4
    # the search begins at five coordinates per four bytes
    ratios = [codec_of(codec_of(fit)).ratio for fit in (reply, request)]
    assert ratios == pytest.approx([5 * 3918 / 400_000, 5 * 10_906 / 400_000], rel=1e-12)


def test_the_smallest_budget_by_hand() -> None:
    # dense 230 and 232 bytes; the smallest request has 159, the smallest reply 151 and a slope: 325 / 462 = 0.70346
    scope = Scope(quadratic_schema(), clients=50, cohort=10, rounds=60)
    Lean(0.7035).resolve(scope)
    with pytest.raises(ConfigError, match=r"from 0\.7035,"):
        Lean(0.7034).resolve(scope)


@pytest.mark.slow
def test_what_a_message_may_take_decides_its_codec() -> None:
    # at 0.02 a reply has 1 % of the dense bytes and a request 3 %; at 0.05 2.5 and 7.5 %
    def rounded(budget: float, way: str) -> str | None:
        found = Lean(budget).resolve(SCOPE)
        link = found.uplink["update"] if way == "up" else found.downlink["model"]
        allot = codec_of(codec_of(codec_of(link)))
        assert isinstance(allot, Allot)
        return getattr(allot.codec, "values", None)

    wanted = {0.005: ("int4", "int4"), 0.02: ("int4", "int4"), 0.05: ("int4", "int8"), 0.3: ("fp16", None)}
    assert {budget: (rounded(budget, "up"), rounded(budget, "down")) for budget in wanted} == wanted


@pytest.mark.parametrize("budget", [0.001, 0.01, 0.02, 0.05, 0.1, 0.3, 0.5, 0.65, 0.8, 0.95])
@pytest.mark.parametrize("shares_initial", [True, False])
def test_what_is_allowed_adds_up_to_the_budget(budget: float, shares_initial: bool) -> None:
    scope = Scope(SCOPE.schema, 50, 10, 200, shares_initial)
    dense = dense_reference(scope.schema)
    total = budget * scope.num_requests * (dense.request_bytes + dense.reply_bytes)
    if not shares_initial:
        total -= 50 * dense.request_bytes
        if budget <= 0.01:  # 50 dense models of 4,000 messages are more than a hundredth
            with pytest.raises(ConfigError, match=r"method\.budget must be from 0\.0\d+, the smallest"):
                Lean(budget).resolve(scope)
            return
    found = Lean(budget).resolve(scope)
    header = 90
    num_down = scope.num_requests - (10 if shares_initial else 50)
    is_dense = "model" not in found.downlink
    down = dense.request_bytes if is_dense else codec_of(found.downlink["model"]).bytes
    num_down = scope.num_requests if is_dense and shares_initial else num_down
    up = dense.reply_bytes if "update" not in found.uplink else codec_of(found.uplink["update"]).bytes
    firsts = 45 if shares_initial and not is_dense else 0  # 40 clients are asked late, 5 may lose their state
    more = firsts * (first_of(found.downlink["model"]) - down) if firsts else 0
    used = num_down * down + more + scope.num_requests * up
    assert total - (scope.num_requests * 2 + 10) * header <= used <= total


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["per_client", "shared"])
@pytest.mark.parametrize("budget", [0.02, 0.3, 0.49])
def test_in_one_round_nothing_but_replies_costs(memory: Literal["per_client", "shared"], budget: float) -> None:
    # both ends make the initial model, and there is no second request: the whole budget goes up
    scope = Scope(SCOPE.schema, 50, 10, 1)
    dense = dense_reference(scope.schema)
    found = Lean(budget, server_memory=memory).resolve(scope)
    assert "model" in found.downlink  # a plain dense link would carry the model
    up = codec_of(found.uplink["update"]).bytes
    assert 0 <= budget * (dense.request_bytes + dense.reply_bytes) - up < 4 * 90
    assert not Lean(1.0, server_memory=memory).resolve(scope).downlink


def test_a_budget_of_broadcasts_by_hand() -> None:
    # the broadcasts of rounds 2 to 60 reach at most 50 clients each; the last ones only those who are yet asked: 40,
    # 30, 20, 10 in rounds 57 to 60. 55 * 50 + 100 = 2,850 of them, and 600 requests around them
    dense = dense_reference(SCOPE.schema)
    both = dense.request_bytes + dense.reply_bytes
    one, many = (Lean(0.02, server_memory=memory).resolve(SCOPE) for memory in ("per_client", "shared"))
    assert (one.method, one.uplink) == (many.method, many.uplink)
    link = many.downlink["model"]
    assert isinstance(link, Broadcast)
    header = 90
    wanted = both * 0.02 * 3 / 4 * 600 / 2850
    assert 0 <= wanted - link.codec.bytes < header * (1 + 600 / 2850)  # type: ignore[attr-defined]


@pytest.mark.parametrize("rounds", [1, 2, 7, 60, 1025, 1026, 1100])
@pytest.mark.parametrize("clients", [10, 50, 100_000])
def test_whoever_is_asked_when_broadcasts_stay_within_the_budget(rounds: int, clients: int) -> None:
    # a client receives each broadcast once, up to the last round that asks it; at worst all are asked as late as can be
    scope = Scope(SCOPE.schema, clients, 10, rounds)
    budget, dense = 0.3, dense_reference(scope.schema)
    found = Lean(budget, server_memory="shared").resolve(scope)
    total = budget * scope.num_requests * (dense.request_bytes + dense.reply_bytes)
    up = codec_of(found.uplink["update"]).bytes if found.uplink else dense.reply_bytes
    if "model" not in found.downlink:
        assert scope.num_requests * (dense.request_bytes + up) <= total
        return
    last_visits = sorted((rounds - place // 10 for place in range(min(clients, scope.num_requests))), reverse=True)
    delivered = sum(last - 1 for last in last_visits if last > 1)
    too_old = min(clients, 10 * max(0, rounds - 1025))  # who missed more than 1,024 is sent the estimate, dense
    used = delivered * codec_of(found.downlink["model"]).bytes + scope.num_requests * up
    assert used + too_old * dense.request_bytes <= total


def test_the_memory_of_the_server_is_part_of_the_run_only_if_it_is_shared() -> None:
    plain, same, shared = (
        tiny(method={"name": "lean", "budget": 0.9, **more}).run_id
        for more in ({}, {"server_memory": "per_client"}, {"server_memory": "shared"})
    )
    assert plain == same != shared
    assert Lean(1.0, server_memory="shared").resolve(SCOPE) == Lean(1.0).resolve(SCOPE)


@pytest.mark.slow
def test_smaller_budgets_send_no_more() -> None:
    sizes = [
        tuple(codec_of(link).bytes for link in (found.uplink["update"], found.downlink["model"]))
        for found in (Lean(budget).resolve(SCOPE) for budget in (0.002, 0.01, 0.02, 0.05, 0.1, 0.2))
    ]
    assert sizes == sorted(sizes)
    assert [size[1] for size in sizes] == sorted(size[1] for size in sizes)


@pytest.mark.slow
def test_budget_1_is_dense_fedavg(tmp_path: Path) -> None:
    assert assemble(tiny(method={"name": "lean", "budget": 1})).recipe == Recipe(FedAvg())
    dense, same = (run(tiny(method=method), tmp_path / str(number)) for number, method in enumerate(("fedavg", FULL)))
    assert same.summary["model_digest"] == dense.summary["model_digest"]
    assert [row.total_bytes for row in same.ledger()] == [row.total_bytes for row in dense.ledger()]
    assert same.summary["communication"] == dense.summary["communication"]


FULL = {"name": "lean", "budget": 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.0, 0.001, -1.0, 1.01, float("nan")])
def test_a_budget_out_of_reach_names_the_smallest(budget: float) -> None:
    scope = Scope(SCOPE.schema, 50, 10, 60, shares_initial=False)
    with pytest.raises(ConfigError) as caught:
        Lean(budget).resolve(scope)
    words = str(caught.value)
    assert words.startswith("method.budget must be from 0.0")
    assert "the smallest that this federation can reach (60 rounds, 10 of 50 clients in each, 400,000 bytes" in words
    smallest = float(words.split("from ")[1].split(",")[0])
    Lean(smallest).resolve(scope)
    with pytest.raises(ConfigError):
        Lean(smallest - 1e-4).resolve(scope)


@pytest.mark.slow
def test_links_of_ones_own_are_refused() -> None:
    config = tiny(method={"name": "lean", "budget": 0.9}, uplink={"update": {"name": "top_k"}})
    with pytest.raises(ConfigError, match=r"uplink\.update: method lean chooses its links itself; drop uplink"):
        assemble(config)


@pytest.mark.slow
def test_statistics_cannot_take_the_link_of_the_update() -> None:
    """The error names what the user wrote, not a link that the budget chose; at budget 1 there is none."""
    with pytest.raises(ConfigError, match=r"^buffers: as_weights sends .* method lean .*; set buffers: dense$"):
        assemble(tiny(method={"name": "lean", "budget": 0.9}, buffers="as_weights"))
    assert not assemble(tiny(method={"name": "lean", "budget": 1.0}, buffers="as_weights")).recipe.uplink


@pytest.mark.parametrize("name", ["docofl"])
def test_nothing_stands_around_it(name: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"method\.inner: lean chooses its links for the whole federation, .* {name}"
    ):
        tiny(method={"name": name, "inner": "lean"})


def test_momentum_changes_the_server_step_alone() -> None:
    plain, moved = (Lean(0.02, momentum).resolve(SCOPE) for momentum in (0.0, 0.3))
    assert (plain.uplink, plain.downlink) == (moved.uplink, moved.downlink)
    assert plain.method == Averaging(step=MovingAverageStep(0.7, DampedStep()))
    assert moved.method == Averaging(step=MovingAverageStep(0.7, DampedStep(MomentumStep(1.0, 0.3))))
    without, zero = ({"name": "lean", "budget": 0.9, **more} for more in ({}, {"momentum": 0.0}))
    assert tiny(method=without).run_id == tiny(method=zero).run_id != tiny(method={**without, "momentum": 0.3}).run_id
    with pytest.raises(ConfigError, match=r"method\.momentum must be in \[0, 1\), got 1"):
        tiny(method={**without, "momentum": 1.0})


def test_without_the_moving_average_the_last_model_is_evaluated() -> None:
    last, average = (Lean(0.02, moving_average=beta).resolve(SCOPE) for beta in (0.0, 0.7))
    assert (last.uplink, last.downlink) == (average.uplink, average.downlink)
    assert last.method == Averaging(step=DampedStep())
    with pytest.raises(ConfigError, match=r"method\.moving_average must be in \[0, 1\), got 1"):
        tiny(method={"name": "lean", "budget": 0.9, "moving_average": 1.0})


def digits(budget: float, **parts: Any) -> RunConfig:
    return load({**DIGITS, **parts, "method": {"name": "lean", "budget": budget}})


def shares(directory: RunDirectory) -> tuple[float, np.ndarray, np.ndarray]:
    """The share of dense FedAvg's bytes over the run, and bytes per message, down and up, in each round."""
    reference = dense_reference(assemble(load(directory.config)).schema)
    found = traffic(boundary_of("messages"), directory.ledger(), directory.events(), reference)
    cohort = DIGITS["rounds"]["cohort"]
    return 1 - found.saving(), found.down / cohort, found.up / cohort


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget", [0.02, pytest.param(0.01, marks=pytest.mark.slow), pytest.param(0.1, marks=pytest.mark.slow)]
)
def test_bytes_are_as_predicted_and_never_more(budget: float, tmp_path: Path) -> None:
    directory = run(digits(budget), tmp_path / "run")
    share, down, up = shares(directory)
    resolved = json.loads((tmp_path / "run" / "provenance.json").read_text())["resolved"]
    assert share <= budget
    assert share >= 0.9 * budget
    for sizes, link in ((down, resolved["downlink"]["model"]), (up, resolved["uplink"]["update"])):
        predicted = link["codec"]["bytes"]
        assert (np.abs(sizes[4:] - predicted) <= 0.1 * predicted).all()
    assert down[0] < 0.2 * down[4]  # the first model did not travel
    assert directory.summary["counts"].get("resyncs", 0) == 0


@pytest.mark.slow
def test_broadcasts_keep_to_the_budget_and_to_what_was_predicted(tmp_path: Path) -> None:
    method = {"name": "lean", "budget": 0.05, "server_memory": "shared"}
    config = load({**DIGITS, "method": method})
    found, directory = predict(config), run(config, tmp_path / "run")
    share, _, up = shares(directory)
    assert share <= 0.05
    told, memory = directory.summary["communication"]["messages"], directory.summary["memory_bytes"]
    assert abs(found.down_bytes - told["down_bytes"]) <= 0.1 * told["down_bytes"]
    assert abs(found.up_bytes - told["up_bytes"]) <= 0.1 * told["up_bytes"]
    assert abs(found.server_memory_bytes - memory["server.all"]) <= 0.1 * memory["server.all"]
    resolved = json.loads((tmp_path / "run" / "provenance.json").read_text())["resolved"]
    broadcast, last = resolved["downlink"]["model"]["codec"]["bytes"], dict[int, int]()
    requests = [row for row in directory.ledger() if row.direction == "down"]
    around = requests[0].total_bytes  # the first model did not travel
    for row in requests:
        missed = row.round_number - last.get(row.client, 1)
        last[row.client] = row.round_number
        if row.round_number >= 5:
            assert abs((row.total_bytes - around) / missed - broadcast) <= 0.1 * broadcast
    assert up[4:].max() <= 1.1 * resolved["uplink"]["update"]["codec"]["bytes"]
    assert directory.summary["counts"].get("resyncs", 0) == 0


@pytest.mark.slow
def test_every_executor_ends_in_the_same_bits_and_a_run_goes_on(tmp_path: Path) -> None:
    config = digits(0.05, rounds={"count": 4, "cohort": 4})
    serial = run(config, tmp_path / "serial")
    pool = run(load({**config.to_plain(), "executor": {"name": "pool", "workers": 2}}), tmp_path / "pool")
    assert serial.summary["model_digest"] == pool.summary["model_digest"]
    assert serial.summary["communication"] == pool.summary["communication"]


def check_both_ends(session: Session) -> None:
    """What the server thinks that a client holds is what it holds."""
    for client, contact in session.record.contacts.items():
        held = session.store.load(client).memories[contact.ack].downlink["model"]
        assert is_equal(held, contact.downlink["model"])


def test_a_client_that_lost_its_memory_starts_over_and_the_cost_is_in_the_ledger() -> None:
    session = QuadraticFederation.draw(3, NOISY).play(build("lean", budget=0.75), 3, Setting(cohort=3))
    session.store.save(1, ClientRecord())
    session.advance(2)
    mine = [row for row in session.ledger.rows if row.client == 1 and row.round_number > 3]
    assert [(row.round_number, row.kind, row.direction) for row in mine] == [
        (4, "train", "down"), (4, "forgot", "up"), (5, "train", "down"), (5, "update", "up"),
    ]  # fmt: skip
    assert all(row.total_bytes > 0 for row in mine)
    assert [event.outcome for event in session.ledger.events if event.client == 1] == [*["fresh"] * 3, "lost", "fresh"]
    assert "resyncs" not in session.ledger.counts  # a difference to the initial model, which it makes again
    check_both_ends(session)


@pytest.mark.parametrize("lost", [1, 2])
def test_lost_memories_stay_within_the_budget(lost: int) -> None:
    """Two of 20 clients lose their state after ten rounds: the plan has a first difference for each of them again."""
    weights = Schema((TensorSpec("a.weight", (60, 100)), TensorSpec("b.bias", (100,))))
    scope = Scope(quadratic_schema(has_buffers=False, weights=weights), 20, 10, 24)
    found = Lean(0.1).resolve(scope)
    federation = QuadraticFederation.draw(20, NOISY, has_buffers=False, weights=weights)
    method = Recipe(found.method, found.uplink, found.downlink).build()
    session = federation.play(method, 10, Setting(cohort=10))
    assert len(session.record.contacts) == 20  # nobody is asked late after this
    losers = sorted(session.record.contacts)[:lost]
    for client in losers:
        session.store.save(client, ClientRecord())
    session.advance(14)
    rows = session.ledger.rows
    assert {row.client for row in rows if row.kind == "forgot"} == set(losers)
    ordinary, first = codec_of(found.downlink["model"]).bytes, first_of(found.downlink["model"])
    assert first > 1.5 * ordinary
    down = [row for row in rows if row.direction == "down" and row.round_number > 1]
    assert sum(row.total_bytes > 1.2 * ordinary for row in down) == 10 + lost  # late contacts, and those who lost
    dense = dense_reference(scope.schema)
    assert sum(row.total_bytes for row in rows) <= 0.1 * 240 * (dense.request_bytes + dense.reply_bytes)


def test_a_client_with_another_memory_is_sent_everything_in_the_same_round() -> None:
    federation = QuadraticFederation.draw(3, NOISY)
    session = federation.play(build("lean", budget=0.75), 3, Setting(cohort=3))
    ack = session.record.contacts[1].ack
    memory = session.store.load(1).memories[ack]
    session.store.save(1, ClientRecord({ack: replace(memory, downlink={"model": federation.initial.weights})}))
    session.advance(1)
    mine = [row for row in session.ledger.rows if row.client == 1 and row.round_number == 4]
    assert [(row.kind, row.direction) for row in mine] == [
        ("train", "down"), ("resync", "up"), ("train", "down"), ("update", "up"),
    ]  # fmt: skip
    assert mine[2].group_bytes("model") == federation.schema.weights.dense_bytes > mine[0].group_bytes("model")
    assert (session.ledger.counts["resyncs"], {event.outcome for event in session.ledger.events}) == (1, {"fresh"})
    check_both_ends(session)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [RandomFaults(), RandomFaults(lost=0.3, late=0.2)], ids=["calm", "faults"])
def test_a_server_that_went_back_ends_in_the_same_bits(faults: RandomFaults) -> None:
    setting = Setting(checkpoint_every=3, faults=faults)
    whole = QuadraticFederation.draw(6, NOISY).play(build("lean", budget=0.75), 7, setting)
    again = QuadraticFederation.draw(6, NOISY).play(build("lean", budget=0.75), 5, setting).resumed().advance(4)
    assert is_same(again.model, whole.model)
    told, wanted = ([replace(row, work=Work()) for row in one.ledger.rows] for one in (again, whole))
    assert told == wanted  # but for the seconds
    assert "resyncs" not in again.ledger.counts
    check_both_ends(again)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.75, 0.9])
def test_it_equals_the_links_that_it_stands_for(budget: float) -> None:
    scope = Scope(quadratic_schema(), 6, 3, 7)
    found = Lean(budget).resolve(scope)
    federation = QuadraticFederation.draw(6, NOISY)
    by_hand = federation.play(Recipe(found.method, found.uplink, found.downlink).build(), 7, Setting())
    session = federation.play(build("lean", budget=budget), 7, Setting())
    assert is_same(session.model, by_hand.model)
    assert [row.total_bytes for row in session.ledger.rows] == [row.total_bytes for row in by_hand.ledger.rows]


@pytest.mark.slow
def test_equals_the_reference() -> None:
    found = Lean(0.75).resolve(Scope(quadratic_schema(), 6, 3, 7))
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("lean", budget=0.75), 5)
    schema = quadratic_schema()

    def through(codec: Codec, part: Schema) -> Any:
        def compress(vector: np.ndarray) -> np.ndarray:
            return to_dense(codec.encode(Tensors(part, vector), part, np.random.default_rng(0)).decode(part)).values

        return compress

    wanted = lean(
        plain_problem(federation, 5, 3),
        through(codec_of(found.uplink["update"]), schema.weights),
        through(codec_of(found.downlink["model"]), schema.weights),
        through(found.downlink["model"].first or codec_of(found.downlink["model"]), schema.weights),  # type: ignore[attr-defined]
        through(Narrow(Dense(), "bf16"), schema.buffers),
        0.7,
    )
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)


def test_without_a_barrier_the_budget_holds(tmp_path: Path) -> None:
    lines = {
        "name": "profile",
        "up": {"low": 1e4, "high": 2e5},
        "down": "1mbit",
        "latency": "10ms",
        "compute": "1mflops",
    }
    method = {"name": "lean", "budget": 0.5, "buffer": 2}
    config = tiny(devices=lines, method=method, rounds={"count": 30, "cohort": 4, "evaluate_every": 30})
    directory = run(config, tmp_path / "run")
    rows = directory.ledger()
    scope = replace(config.scope(assemble(config).schema), buffer=2)
    num_requests = sum(row.direction == "down" for row in rows)
    assert num_requests == scope.num_requests == 63 or num_requests < scope.num_requests
    dense = dense_reference(scope.schema)
    assert sum(row.total_bytes for row in rows) <= 0.5 * scope.num_requests * (dense.request_bytes + dense.reply_bytes)
    assert max(event.age or 0 for event in directory.events()) >= 2  # differences to versions of several ages
    assert tiny(method={"name": "lean", "buffer": None}).run_id == tiny(method="lean").run_id


def test_without_a_barrier_the_step_follows_from_clients_at_work_and_rounds() -> None:
    def found(budget: float, cohort: int, **keys: Any) -> Any:
        return Lean(budget, buffer=5, **keys).resolve(Scope(SCOPE.schema, 50, cohort, 60)).method

    # 20 clients at work are four steps of 5 replies ahead of each other: half a step each
    annealed = AnnealedStep(60, 0.5, 0.05, 0.2)
    assert found(0.1, 20) == Buffered(5, 1.0, step=MovingAverageStep(0.7, annealed), weighting="ratio")
    assert found(0.1, 20, moving_average=0.0).step == annealed
    assert found(0.1, 20, momentum=0.5).step.inner.inner == MomentumStep(1.0, 0.5)
    assert found(0.1, 8).step.inner.first == 1.0  # fewer than two steps: whole ones
    assert found(1.0, 20) == Buffered(5, 1.0, weighting="ratio")  # nothing is lost on the way: no schedule, no average


def test_a_buffer_of_shared_broadcasts_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.server_memory must be per_client"):
        Lean(buffer=2, server_memory="shared")
    with pytest.raises(ConfigError, match=r"method\.buffer must be at least 1"):
        Lean(buffer=0)


LINES = {"name": "profile", "up": {"low": "56kbit", "high": "2mbit"}, "down": {"low": "56kbit", "high": "5mbit"}}


def lengths_of(config: RunConfig) -> tuple[dict[tuple[str, int], set[int]], int]:
    """Return the sizes of all messages of rounds after the first by direction and client, and their sum."""
    session = run(config, Path(config.label)).ledger()
    sizes: dict[tuple[str, int], set[int]] = {}
    for row in session:
        if row.round_number > 1 or row.direction == "up":
            sizes.setdefault((row.direction, row.client), set()).add(row.total_bytes)
    return sizes, sum(row.total_bytes for row in session)


def test_by_line_keeps_the_bytes_and_shortens_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    configs = [load({**DIGITS, "devices": LINES, "method": {"name": "lean", "budget": 0.1, "by_line": by_line}})
               for by_line in (False, True)]  # fmt: skip
    scope = configs[1].scope(assemble(configs[1]).schema)
    dense = dense_reference(scope.schema)
    most = 0.1 * scope.num_requests * (dense.request_bytes + dense.reply_bytes)
    (equal, _), (sizes, total) = (lengths_of(config) for config in configs)
    assert 0.85 * most < total <= most
    # every message within its client's share, and the share by line
    resolved = Lean(0.1, by_line=True).resolve(scope)
    for (direction, client), found in sizes.items():
        assert max(found) <= resolved.sizes[client][direction == "up"]
    by_rate = sorted(range(20), key=lambda client: scope.lines[client].up)
    replies = [resolved.sizes[client][1] for client in by_rate]
    assert replies == sorted(replies)
    assert replies[-1] > 10 * replies[0]
    taken = {client for direction, client in sizes if direction == "up"}
    assert by_rate[0] in taken  # also the slowest line takes part
    assert {client for direction, client in equal if direction == "up"} == taken
    seconds = [RunDirectory.open(Path(config.label)).summary["simulated_seconds"] for config in configs]
    assert seconds[1] < 0.4 * seconds[0]


def test_by_line_without_lines_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^method lean divides bytes by line, but there are no devices; add"):
        tiny(method={"name": "lean", "by_line": True})
    with pytest.raises(ConfigError, match=r"^method\.by_line needs the clients' bandwidths; add devices"):
        Lean(0.1, by_line=True).resolve(SCOPE)
    with pytest.raises(ConfigError, match=r"^method\.server_memory must be per_client with method\.by_line"):
        Lean(by_line=True, server_memory="shared")


def test_by_line_is_part_of_the_identity_and_equal_lines_get_the_same() -> None:
    assert tiny(method={"name": "lean", "by_line": False}).run_id == tiny(method="lean").run_id
    equal = {"name": "profile", "up": "1mbit", "down": "1mbit"}
    configs = [tiny(devices=equal, method={"name": "lean", "budget": 0.5, "by_line": by_line}) for by_line in (0, 1)]
    assert configs[0].run_id != configs[1].run_id
    sizes = configs[1].method.resolve(configs[1].scope(assemble(configs[1]).schema)).sizes  # type: ignore[union-attr]
    assert len(set(sizes)) == 1


def test_by_line_with_a_buffer_stays_within_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    method = {"name": "lean", "budget": 0.2, "buffer": 2, "by_line": True}
    config = load({**DIGITS, "devices": {**LINES, "compute": "1gflops"}, "method": method})
    scope = replace(config.scope(assemble(config).schema), buffer=2)
    dense = dense_reference(scope.schema)
    _, total = lengths_of(config)
    assert total <= 0.2 * scope.num_requests * (dense.request_bytes + dense.reply_bytes)


def test_a_line_of_56_kbit_takes_part_as_fast_as_the_others(tmp_path: Path) -> None:
    rows = [f"{client},0,{56_000 if client == 3 else 2_000_000},20000000,1e15" for client in range(20)]
    (tmp_path / "lines.csv").write_text("\n".join(["client,time,up,down,compute", *rows]) + "\n")
    devices = {"name": "trace", "file": str(tmp_path / "lines.csv")}
    config = load({**DIGITS, "devices": devices, "method": {"name": "lean", "budget": 0.1, "by_line": True}})
    shares = {share.client: share for share in predict(config).lines}
    assert shares[3].reply_bytes < shares[0].reply_bytes / 30
    assert shares[3].seconds <= 1.1 * shares[0].seconds


def test_the_memory_follows_from_the_number_of_clients() -> None:
    def memory(clients: int, rounds: int = 60, **more: Any) -> str:
        return Lean(0.02).memory(Scope(SCOPE.schema, clients, 10, rounds, **more))

    assert memory(1000) == "per_client"
    assert memory(1001) == "none"  # 600 requests
    assert memory(1001, 201) == "shared"  # 2,010 requests, more than two for each
    assert memory(1001, shares_initial=False) == "shared"
    assert Lean(0.02, buffer=2).memory(Scope(SCOPE.schema, 10**6, 10, 60)) == "per_client"
    found = Lean(0.02).resolve(Scope(SCOPE.schema, 100_000, 10, 60))
    assert isinstance(found.downlink["model"], FromInitial)
    assert found.because.startswith("server_memory: none (auto); one vector per client would take ")
    with pytest.raises(ConfigError, match="which clients do not create here"):
        Lean(0.02, server_memory="none").resolve(Scope(SCOPE.schema, 50, 10, 60, shares_initial=False))


def test_without_memory_a_request_has_the_mean_allowance() -> None:
    one, none = (Lean(0.02, server_memory=memory).resolve(SCOPE) for memory in ("per_client", "none"))
    assert one.uplink == none.uplink
    ordinary, first, mean = (
        codec_of(one.downlink["model"]).bytes,
        first_of(one.downlink["model"]),
        codec_of(none.downlink["model"]).bytes,
    )
    # 590 requests carry differences, 45 of them first ones
    assert abs(545 * ordinary + 45 * first - 590 * mean) < 590 * 8


def test_outer_products_are_tried_within_the_same_bytes() -> None:
    plain, both = (Lean(0.02, low_rank=low_rank).resolve(SCOPE) for low_rank in (False, True))
    for links, others in ((plain.uplink, both.uplink), (plain.downlink, both.downlink)):
        for group, link in links.items():
            if group in ("update", "model"):
                codec, other = codec_of(link), codec_of(others[group])
                assert (codec.other, other.bytes) == (None, codec.bytes)
                assert isinstance(other.other, LowRank)
