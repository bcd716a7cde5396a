"""Bounds by medians: hand-worked numbers, members who change keys, and every method through the same door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.message import Message
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, dot
from fedreuse.robustness import bounds
from fedreuse.robustness.bounds import BoundedState, Seen, bounded, is_unprotected, most_examples
from fedreuse.runs.launch import run
from tests.robustness.test_poisoning import StopAfter
from tests.tiny import results, tiny

FOUR = Schema((TensorSpec("w", (4,)),))
SHORT = dict.fromkeys(range(4), 1.0)


def reply(*numbers: float, group: str = "update") -> Message:
    return Message("update", {group: Tensors(FOUR, np.array(numbers, np.float32))})


def norm(message: Message, group: str = "update") -> float:
    tensors = message.groups[group]
    return float(dot(tensors, tensors) ** 0.5)


def test_long_replies_are_shortened_to_the_median_norm() -> None:
    # norms 3, 4, 100: the median is 4, so the last becomes (0, 0, 4, 0)
    made, seen, flagged = bounded({0: reply(3, 0, 0, 0), 1: reply(0, 4, 0, 0), 2: reply(0, 0, 100, 0)}, Seen())
    assert seen.norms == {"update": {0: 3.0, 1: 4.0, 2: 100.0}}
    assert flagged == {2}
    assert made[2].groups["update"].values.tolist() == [0, 0, 4, 0]
    assert made[0].groups["update"].values.tolist() == [3, 0, 0, 0]


def test_each_group_has_its_own_bound_and_running_statistics_have_one_too() -> None:
    replies = {client: reply(client + 1, 0, 0, 0, group="buffers") for client in range(3)}
    made, _, flagged = bounded({**replies, 3: reply(1000, 1000, 1000, 1000, group="buffers")}, Seen())
    assert norm(made[3], "buffers") == norm(made[2], "buffers") == 2.5  # the median of 1, 2, 3 and 2000
    assert flagged == {3}  # a norm of 3 is shortened too, and honest


def test_coordinates_stay_near_the_median_of_the_replies() -> None:
    # second coordinate: 0, 0, .1, .1, 1; median .1, deviations .1 .1 0 0 .9, MAD .1, so at most .1 + 2 x .1 = .3
    rows = [(1, 0), (1, 0), (1, 0.1), (1, 0.1), (0, 1)]
    made, _, _ = bounded({client: reply(*row, 0, 0) for client, row in enumerate(rows)}, Seen())
    assert made[4].groups["update"].values.tolist() == pytest.approx([1, 0.3, 0, 0], abs=2e-2)
    few, _, _ = bounded({client: reply(*row, 0, 0) for client, row in enumerate(rows[:3])}, Seen())
    assert few[1].groups["update"].values.tolist() == [1, 0, 0, 0]  # three replies have no spread


def test_the_reference_is_the_members_not_the_exchange() -> None:
    """Two attackers asked alone are no majority: the last norms of the others count."""
    made, seen, _ = bounded({7: reply(50, 0, 0, 0), 8: reply(50, 0, 0, 0)}, Seen({"update": SHORT}))
    assert norm(made[7]) == norm(made[8]) == 1
    assert list(seen.norms["update"]) == [0, 1, 2, 3, 7, 8]


def test_a_member_that_comes_back_under_new_keys_gains_only_one_entry_for_each() -> None:
    """Roster rotation: a new key replaces the client's entry. Sybils: below half of the members they move no bound."""
    seen = Seen({"update": SHORT})
    for _ in range(30):  # the same client number, thirty keys
        made, seen, _ = bounded({9: reply(1e6, 0, 0, 0)}, seen)
        assert norm(made[9]) == 1
    assert len(seen.norms["update"]) == 5
    made, _, _ = bounded({client: reply(1e6, 0, 0, 0) for client in (4, 5, 6)}, Seen({"update": SHORT}))  # 3 of 7
    assert {norm(made[client]) for client in (4, 5, 6)} == {1.0}
    made, _, _ = bounded({client: reply(1e6, 0, 0, 0) for client in range(4, 9)}, Seen({"update": SHORT}))  # 5 of 9
    assert norm(made[4]) == 1e6  # a majority decides, as it must be said in the documents


def test_few_replies_are_compared_with_the_last_ones_of_others() -> None:
    """The spread of test_coordinates_stay_near_the_median_of_the_replies, with replies that arrive one by one."""
    rows = [(1, 0)] * 4 + [(1, 0.1), (1, 0.1), (0, 1)]
    seen = Seen()
    for client, row in enumerate(rows):
        made, seen, _ = bounded({client: reply(*row, 0, 0)}, seen)
    assert made[6].groups["update"].values.tolist() == pytest.approx([1, 0.3, 0, 0], abs=2e-2)
    assert list(seen.rows["update"]) == [2, 3, 4, 5, 6]  # from the third norm on
    _, seen, _ = bounded({client: reply(*row, 0, 0) for client, row in enumerate(rows)}, seen)
    assert not seen.rows  # a cohort that answers together is its own reference


def part(**numbers: float) -> Message:
    """A reply with some of four coordinates, such as w2=1."""
    index = np.array([int(name[1:]) for name in numbers], np.int32)
    return Message("update", {"update": Tensors(FOUR, np.array(list(numbers.values()), np.float32), index)})


def test_coordinates_that_few_clients_move_are_cut_in_sparse_replies() -> None:
    # five clients: one at each end of a coordinate does not count. w0: sums 1, 1, 1, 1, 0 with range 0 to 1; w3: sums
    # 0, 0, 0, 0, 1, so the second largest, 0, is the largest that passes
    honest = {client: part(w0=1.0) for client in range(4)}
    made, seen, _ = bounded({**honest, 4: part(w3=1.0)}, Seen())
    assert made[4].groups["update"].values.tolist() == [0, 0, 0, 0]
    assert made[0].groups["update"].values.tolist() == [1, 0, 0, 0]
    assert [one.values.tolist()[3] for one in seen.rows["update"].values()] == [0, 0, 0, 0, 1]
    # next exchange: sums of w3 are 0.5, 0, 0, 0 and 0.9 + 1 = 1.9, so client 4 gets 0.5 / 1.9 of its 1
    made, _, _ = bounded({0: part(w3=0.5), 1: part(w0=1.0), 2: part(w0=1.0), 3: part(w0=1.0), 4: part(w3=1.0)}, seen)
    assert made[4].groups["update"].values.tolist() == pytest.approx([0, 0, 0, 0.5 / 1.9])
    assert made[0].groups["update"].values.tolist() == [0, 0, 0, 0.5]


def test_of_many_clients_earlier_replies_are_no_reference() -> None:
    honest = {client: part(w0=1.0) for client in range(4)}
    made, seen, _ = bounded({**honest, 4: part(w3=1.0)}, Seen(), knows_all=False)
    assert made[4].groups["update"] is not None
    assert norm(made[4]) == 1
    assert not seen.rows


def test_old_norms_are_forgotten() -> None:
    before = Seen({"update": dict.fromkeys(range(bounds.RECENT), 1.0)})
    _, seen, _ = bounded({100: reply(1, 0, 0, 0)}, before)
    assert list(seen.norms["update"]) == [*range(1, bounds.RECENT), 100]


def test_examples_count_up_to_the_median() -> None:
    assert most_examples(np.array([0, 10, 20, 30_000])) == 20
    assert most_examples(np.zeros(3, np.int64)) is None


@pytest.mark.parametrize(
    ("parts", "unprotected"),
    [
        ({}, True),
        ({"bounds": "none"}, True),
        ({"bounds": "median"}, False),
        ({"max_norm": 5.0}, False),
        ({"method": {"name": "averaging", "aggregate": "median"}}, False),
        ({"method": {"name": "averaging", "aggregate": "mean"}}, True),
    ],
)
def test_a_plain_mean_without_bounds_is_unprotected(parts: dict[str, Any], unprotected: bool) -> None:
    assert is_unprotected(tiny(**parts)) == unprotected


def test_data_at_home_are_bounded_unless_the_file_says_otherwise() -> None:
    task = {"name": "at_home", "clients": 4, "shape": [1, 8, 8], "classes": 10, "values": "pixels"}
    task |= {"mean": [0.5], "std": [0.5]}
    assert tiny(task=task).bounds == "median"
    assert tiny(task=task, bounds="none").bounds == "none"
    assert tiny().bounds is None


def test_beside_a_private_mean_they_are_refused() -> None:
    method = {"name": "averaging", "aggregate": {"name": "private_mean"}}
    assert tiny(method=method).bounds is None
    with pytest.raises(ConfigError, match="private_mean bounds every client by clip"):
        tiny(method=method, bounds="median")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["averaging", "dg_fedreuse", {"name": "lean", "budget": 0.5}, "mifa"], ids=str)
def test_an_attack_that_ends_a_plain_run_does_not_end_a_bounded_one(tmp_path: Path, method: Any) -> None:
    attack = {"name": "constant", "update": 1e6, "statistics": 1e3, "bad": 0.2}
    config = tiny(method=method, attack=attack, bounds="median")
    directory = run(config, tmp_path / "run")
    assert any(event.reason == "bounded" for event in directory.events())
    run(config, tmp_path / "again", listeners=[StopAfter(2)])
    assert results(run(config, tmp_path / "again", resume=True)) == results(directory)


def test_the_state_holds_the_method_s_own() -> None:
    method = tiny(bounds="median").build_method()
    assert type(method.server).__name__ == "BoundedServer"
    assert BoundedState(1, Seen()).inner == 1
