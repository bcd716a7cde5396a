"""Costs: examples at first, then seconds as measured, or scaled from others."""

from fedreuse.engine.executors.costs import Costs

EXAMPLES = {1: 10, 2: 30, 3: 20}


def test_before_any_measurement_examples_order():
    costs = Costs(EXAMPLES.__getitem__)
    assert sorted(EXAMPLES, key=lambda client: -costs.of("train", client)) == [2, 3, 1]


def test_a_measurement_counts_and_scales_the_others_of_its_kind():
    costs = Costs(EXAMPLES.__getitem__)
    costs.note("train", 1, 5.0)
    costs.note("train", 2, 3.0)
    assert (costs.of("train", 1), costs.of("train", 2)) == (5.0, 3.0)
    assert costs.of("train", 3) == 4.0  # 8 seconds for 40 examples are 4 for 20
    assert costs.of("score", 3) == 20  # another kind, not measured yet
    costs.note("train", 1, 1.0)
    assert costs.of("train", 1) == 1.0


def test_clients_without_examples_cost_something_finite():
    costs = Costs(lambda client: 0)
    costs.note("train", 1, 2.0)
    assert costs.of("train", 2) == 0.0
