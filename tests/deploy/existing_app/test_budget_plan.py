"""Budgets: sizes of messages that keep them, first contacts, and budgets that cannot be kept or cannot train."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.accounting.dense import dense_reference
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.deploy.existing_app.budget_plan import BudgetPlan, Exchanges

SCHEMA = ModelSchema(
    Schema((TensorSpec("a", (100, 200)), TensorSpec("b", (200,)))),
    Schema((TensorSpec("m.running_mean", (200,), role="buffer"),)),
)
ALL = Exchanges(nodes=4, rounds=30, train=4, evaluate=4)


def drawn(link: object, held: bool) -> int:
    part = SCHEMA.weights
    context = LinkContext(part, 2, 0, np.random.default_rng(1), initial=zeros(part) if held else None)
    values = np.random.default_rng(2).standard_t(3, part.size).astype(np.float32)
    return int(link.send(Tensors(part, values), None, context)[0].body_bytes)  # type: ignore[attr-defined]


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("budget", [0.02, 0.05, 0.3])
def test_both_directions_keep_the_budget(budget: float, low_rank: bool) -> None:
    plan, dense = BudgetPlan(budget, SCHEMA, ALL, low_rank), dense_reference(SCHEMA)
    statistics = 2 * 200  # bf16
    up = drawn(plan.uplink()["update"], True) + statistics
    assert 0.7 * budget * dense.reply_bytes < up < budget * dense.reply_bytes
    link = plan.downlink()["model"]
    # a node gets one first contact and 30 differences, for 30 requests to train and 30 to evaluate
    down = drawn(link, False) + 30 * (drawn(link, True) + statistics)
    assert 0.7 * budget * 60 * dense.request_bytes < down < budget * 60 * dense.request_bytes


def test_by_hand() -> None:
    # 4 of 10 nodes train and 5 evaluate: a model does not reach a node with probability 0.6 * 0.5
    exchanges = Exchanges(nodes=10, rounds=20, train=4, evaluate=5)
    assert exchanges.models_sent == pytest.approx(20 * 10 * 0.7)
    assert exchanges.replies_per_node == 8


def test_links() -> None:
    plan = BudgetPlan(0.05, SCHEMA, ALL)
    assert isinstance(plan.uplink()["update"], ErrorFeedback)
    assert isinstance(plan.downlink()["model"], Delta)
    whole = BudgetPlan(1.0, SCHEMA, ALL)
    assert (whole.uplink(), whole.downlink()) == ({}, {})


def test_first_contacts_are_finer_where_there_is_room() -> None:
    kinds = [BudgetPlan(0.05, SCHEMA, Exchanges(4, rounds, 4, 4)).first_kind for rounds in (5, 30, 60, 400)]
    assert kinds == ["int8", "int8", "bf16", None]
    assert BudgetPlan(0.02, SCHEMA, Exchanges(4, 6, 4, 4)).first_kind == "int4"


def test_a_budget_below_the_smallest_is_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match=r"at least 0\.\d+ in this run \(2 rounds.*first contacts.*number of rounds"):
        BudgetPlan(0.01, SCHEMA, Exchanges(4, 2, 4, 4))
    smallest = BudgetPlan(0.5, SCHEMA, Exchanges(4, 2, 4, 4)).smallest
    BudgetPlan(smallest, SCHEMA, Exchanges(4, 2, 4, 4))
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        BudgetPlan(1.5, SCHEMA, ALL)


def test_the_hint_names_rounds_and_budget_that_are_enough() -> None:
    short = BudgetPlan(0.04, SCHEMA, Exchanges(4, 5, 4, 4))
    hint = short.hint() or ""
    rounds = int(hint.rpartition("at least ")[0].rpartition("at least ")[2].split()[0])
    budget = float(hint.rpartition(" ")[2])
    assert BudgetPlan(0.04, SCHEMA, Exchanges(4, rounds, 4, 4)).hint() is None
    assert BudgetPlan(1.05 * budget, SCHEMA, Exchanges(4, 5, 4, 4)).hint() is None
    assert BudgetPlan(0.05, SCHEMA, ALL).hint() is None


def test_on_real_nodes_the_budget_counts_the_requests_of_flower() -> None:
    arrays, rounds = 3, 30
    plan = BudgetPlan(0.3, SCHEMA, Exchanges(4, rounds, 4, 4, is_joined=True, is_on_wire=True))
    records, count = rounds * 4 * dense_reference(SCHEMA).reply_bytes, 4 * rounds
    # by hand: an exchange without compression has 2 * 4 + 2 * arrays objects, an evaluation 2 * arrays fewer up; with
    # it six, the last round evaluates alone and the first contact takes one more; a node starts with 3,944 bytes and
    # ten polls, and polls four times an exchange
    down, up, request, reply, poll = 933, 1153, 859 + 946, 1073, 859
    alone = (
        2 * count * (request + reply + 4 * poll) + (4 + 2 * arrays) * (2 * count * down + count * up) + 3 * count * up
    )
    ours = (count + 4 + 4) * (request + reply + 4 * poll + 3 * (down + up))
    start = 4 * (3944 + 10 * poll)
    sent = 0.3 * (records + alone + start) - ours - start
    assert plan._records("up") == pytest.approx(sent / records, rel=1e-6)
    assert plan.expected_share("up") == pytest.approx(0.3)
    assert plan.overhead_hint() is None
    assert BudgetPlan(0.1, SCHEMA, ALL)._records("up") == 0.1
    assert plan._budget("up", plan._records("up")) == pytest.approx(0.3)


def test_a_budget_that_flower_alone_exceeds_is_named() -> None:
    plan = BudgetPlan(0.05, SCHEMA, Exchanges(4, 30, 4, 4, is_on_wire=True))
    assert plan._records("up") == pytest.approx(0.3 * 0.05)
    assert plan.expected_share("up") > 0.1
    assert "will cross instead of 5.0%" in (plan.overhead_hint() or "")


@pytest.mark.parametrize(("budget", "rounds", "size"), [(0.05, 30, 330_000), (0.025, 100, 700_000)])
def test_models_of_the_size_that_the_guide_names_keep_the_budget_on_real_nodes(
    budget: float, rounds: int, size: int
) -> None:
    def share(size: int) -> float:
        schema = ModelSchema(Schema(tuple(TensorSpec(name, (size // 16,)) for name in "abcd")))
        return BudgetPlan(budget, schema, Exchanges(3, rounds, 3, 3, True, True)).expected_share("up")

    assert share(size) == pytest.approx(budget)
    assert share(size // 2) > 1.3 * budget


def test_outer_products_are_tried_if_asked_for() -> None:
    sides = np.random.default_rng(0).normal(size=300)  # a product of normal numbers has few large coordinates
    flat = np.concatenate([np.outer(sides[:100], sides[100:]).reshape(-1), np.zeros(200)])
    values = Tensors(SCHEMA.weights, flat.astype(np.float32))
    context = LinkContext(SCHEMA.weights, 2, 0, np.random.default_rng(1), initial=zeros(SCHEMA.weights))
    for low_rank in (True, False):
        parcel, _ = BudgetPlan(0.02, SCHEMA, ALL, low_rank).uplink()["update"].send(values, None, context)
        assert parcel is not None
        assert (parcel.blocks[0].mode.name == "factors") == low_rank
