"""Held-out examples: stratified, exact, deterministic; and a test split that opens once."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedreuse.core.errors
from fedreuse.core.checked import with_check
from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.core.randomness import stream
from fedreuse.core.streams import first_numbers
from fedreuse.learning.data import Examples, Split, digest_of
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.partitions.dirichlet import Dirichlet
from fedreuse.learning.partitions.iid import Iid
from fedreuse.learning.splits import SealedSplit, draw, hold_out, local_test, together


class Streams:
    """The clients' streams of a seed, each asked on its own."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, clients: Sequence[int], counts: np.ndarray) -> np.ndarray:
        drawn = [
            stream(self.seed, "validation", 0, client).random(count)
            for client, count in zip(clients, counts, strict=True)
        ]
        return np.concatenate([np.empty(0), *drawn])


numbers_of = Streams(3)


def one_client(labels: list[int]) -> ClientIndex:
    return ClientIndex(np.array([0, len(labels)]), np.arange(len(labels)))


def held_labels(labels: list[int], share: float) -> list[int]:
    _, validation = hold_out(one_client(labels), np.array(labels), share, numbers_of)
    return sorted(np.array(labels)[validation.indices].tolist())


# hold_out


def test_by_hand() -> None:
    # 25 examples, share 0.2: round(5.0) = 5; floors 0.2 * (13, 7, 5) = 2, 1, 1 and remainders .6, .4, 0:
    # the fifth comes from class 0
    assert held_labels([0] * 13 + [1] * 7 + [2] * 5, 0.2) == [0, 0, 0, 1, 2]


def test_exact_where_floats_would_not_be() -> None:
    # 0.29 * 100 is 28.999... in floats; 29 of 100
    assert held_labels([0] * 100, 0.29) == [0] * 29
    # 0.1 * 30 = 3 with classes of 10: one each
    assert held_labels([0] * 10 + [1] * 10 + [2] * 10, 0.1) == [0, 1, 2]
    assert len(held_labels([0] * 9, 1 / 3)) == 3


@pytest.mark.parametrize(
    ("num_examples", "share", "expected"),
    [
        (1, 0.5, 0),
        (2, 0.5, 1),
        (2, 0.9, 1),
        (4, 0.1, 0),
        (5, 0.1, 1),
        (14, 0.1, 1),
        (15, 0.1, 2),
        (3, 0.999, 2),
        (1000, 0.001, 1),
    ],
)
def test_tiny_clients(num_examples: int, share: float, expected: int) -> None:
    # halves go up, and one training example always stays
    assert len(held_labels([0] * num_examples, share)) == expected


def test_equal_remainders_do_not_favour_a_label() -> None:
    # 400 clients with five examples of five classes hold out one each: 80 per class, standard deviation 8
    index = ClientIndex(np.arange(401) * 5, np.arange(2000))
    _, validation = hold_out(index, np.arange(2000) % 5, 0.2, numbers_of)
    counts = np.bincount(np.arange(2000)[validation.indices] % 5, minlength=5)
    assert validation.sizes.tolist() == [1] * 400
    assert np.abs(counts - 80).max() < 5 * 8


clients = st.lists(st.lists(st.integers(0, 4), max_size=40), min_size=1, max_size=8)


@pytest.mark.slow
@settings(deadline=None)
@given(clients, st.floats(0, 0.95))
def test_disjoint_complete_and_stratified(labels_of: list[list[int]], share: float) -> None:
    sizes = [len(labels) for labels in labels_of]
    labels = np.array([label for own in labels_of for label in own], dtype=np.int64)
    index = ClientIndex(np.cumsum([0, *sizes]), np.arange(len(labels)), redraws=2)
    train, validation = hold_out(index, labels, share, numbers_of)
    assert (train.redraws, validation.redraws) == (2, 2)
    for client, size in enumerate(sizes):
        kept, held = train.of(client), validation.of(client)
        assert sorted([*kept, *held]) == index.of(client).tolist()
        assert kept.tolist() == sorted(kept)
        assert len(kept) >= min(size, 1)
        assert abs(len(held) - share * size) <= 0.5 + 1e-4 or len(kept) == 1
        for label in range(5):
            own = int((labels[index.of(client)] == label).sum())
            assert abs(int((labels[held] == label).sum()) - share * own) < 1 + 1e-4


def test_a_client_does_not_depend_on_the_others() -> None:
    labels = np.arange(200) % 4
    both = ClientIndex(np.array([0, 80, 200]), np.arange(200))
    alone = ClientIndex(np.array([0, 0, 120]), np.arange(80, 200))
    assert (
        hold_out(both, labels, 0.15, numbers_of)[1].of(1).tolist()
        == hold_out(alone, labels, 0.15, numbers_of)[1].of(1).tolist()
    )


def test_streams_decide_and_repeat() -> None:
    labels = np.arange(300) % 3
    index = Iid().split(Examples(labels), 5, stream(1, "partition"))
    first = hold_out(index, labels, 0.2, numbers_of)
    again = hold_out(index, labels, 0.2, numbers_of)
    other = hold_out(index, labels, 0.2, Streams(4))
    assert [part.digest for part in first] == [part.digest for part in again]
    assert first[1].digest != other[1].digest
    assert first[1].sizes.tolist() == other[1].sizes.tolist()


def test_which_examples_of_a_class_go_is_drawn() -> None:
    index, labels = one_client([0] * 100), np.zeros(100, dtype=np.int64)
    first, second = (hold_out(index, labels, 0.1, Streams(seed))[1] for seed in (1, 2))
    assert first.digest != second.digest
    assert first.indices.tolist() != list(range(10))


@pytest.mark.slow
def test_no_share_holds_out_nothing_and_draws_nothing_for_a_million() -> None:
    def never(clients: Sequence[int], counts: np.ndarray) -> np.ndarray:
        raise AssertionError(clients, counts)

    index = Iid().split(Examples(np.zeros(1_000_000, dtype=np.int64)), 1_000_000, stream(1, "partition"))
    train, validation = hold_out(index, np.zeros(1_000_000, dtype=np.int64), 0.0, never)
    assert train.digest == index.digest
    assert validation.num_clients == 1_000_000
    assert len(validation.indices) == 0


def test_ten_percent_of_a_skewed_thousand() -> None:
    labels = np.arange(60_000) % 10
    index = Dirichlet(0.1, on_small="move").split(Examples(labels), 1000, stream(1, "partition"))
    train, validation = hold_out(index, labels, 0.1, numbers_of)
    assert len(train.indices) + len(validation.indices) == 60_000
    assert validation.sizes.tolist() == [(size + 5) // 10 for size in index.sizes]


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, float("nan")])
def test_a_share_must_leave_something(share: float) -> None:
    with pytest.raises(ConfigError, match=r"task\.validation must be at least 0 and below 1, got"):
        hold_out(one_client([0, 1]), np.array([0, 1]), share, numbers_of)


# SealedSplit


def split() -> Split:
    return Split(np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6))


def test_opening_records_first_and_hands_out_the_data(tmp_path: Path) -> None:
    data = split()
    opening = SealedSplit(data).open(tmp_path / "test-opened.json", "model a")
    record = json.loads((tmp_path / "test-opened.json").read_text())
    assert opening.split is data
    assert opening.result is None
    assert record["digest"] == digest_of(data.inputs, data.labels)
    assert (record["examples"], record["model"]) == (6, "model a")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(record["opened"])).total_seconds()) < 600


def test_an_opened_split_is_not_opened_again(tmp_path: Path) -> None:
    sealed = SealedSplit(split())
    sealed.open(tmp_path / "test-opened.json", "model a")
    for record in ("test-opened.json", "elsewhere.json"):
        with pytest.raises(RunDirectoryError, match="one run evaluates on it once"):
            sealed.open(tmp_path / record, "model a")
    assert not (tmp_path / "elsewhere.json").exists()


def test_a_second_opening_for_another_model_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "test-opened.json"
    SealedSplit(split()).open(record, "model a")
    written = record.read_bytes()
    sealed = SealedSplit(split())
    with pytest.raises(RunDirectoryError) as caught:
        sealed.open(record, "model b")
    assert f"opened before (at {json.loads(written)['opened']})" in str(caught.value)
    assert "new run in a new directory" in str(caught.value)
    assert record.read_bytes() == written
    assert sealed.open(tmp_path / "other.json", "model b").split is not None  # a refusal keeps the seal


@pytest.mark.slow
def test_another_process_is_refused_too(tmp_path: Path) -> None:
    record = tmp_path / "test-opened.json"
    SealedSplit(split()).open(record, "model a")
    program = (
        "import sys, numpy as np; from pathlib import Path; from fedreuse.learning.data import Split; "
        "from fedreuse.learning.splits import SealedSplit; "
        "SealedSplit(Split(np.zeros((1, 1)), np.zeros(1, int))).open(Path(sys.argv[1]), 'model b')"
    )
    source = Path(fedreuse.core.errors.__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, "-c", program, str(record)],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "RunDirectoryError" in ended.stderr


def test_a_crashed_run_finishes_the_same_look_at_the_same_model(tmp_path: Path) -> None:
    record = tmp_path / "test-opened.json"
    SealedSplit(split()).open(record, "model a")  # and the process dies before it has a result
    opened = json.loads(record.read_text())
    again = SealedSplit(split()).open(record, "model a")
    assert again.result is None
    again.record({"score": 0.5})
    assert json.loads(record.read_text()) == with_check({**opened, "result": {"score": 0.5}})
    assert SealedSplit(split()).open(record, "model a").result == {"score": 0.5}
    with pytest.raises(RunDirectoryError, match="opened before"):
        SealedSplit(split()).open(record, "model b")
    assert [path.name for path in tmp_path.iterdir()] == ["test-opened.json"]


def test_a_record_with_one_changed_character_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "test-opened.json"
    SealedSplit(split()).open(record, "model a").record({"score": 0.5})
    record.write_text(record.read_text().replace("0.5", "0.6"))
    with pytest.raises(RunDirectoryError, match="the record is incomplete or damaged"):
        SealedSplit(split()).open(record, "model a")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"mod'])
def test_a_record_that_a_crash_left_incomplete_counts_as_opened(tmp_path: Path, content: str) -> None:
    record = tmp_path / "test-opened.json"
    record.write_text(content)
    with pytest.raises(RunDirectoryError, match="the record is incomplete"):
        SealedSplit(split()).open(record, "model a")


def test_a_record_that_cannot_be_written_keeps_the_seal(tmp_path: Path) -> None:
    sealed = SealedSplit(split())
    with pytest.raises(RunDirectoryError, match="cannot be recorded"):
        sealed.open(tmp_path / "absent" / "test-opened.json", "model a")
    assert len(sealed.open(tmp_path / "test-opened.json", "model a").split) == 6


def test_only_the_count_is_known(tmp_path: Path) -> None:
    sealed = SealedSplit(split())
    assert len(sealed) == 6
    assert repr(sealed) == "SealedSplit(6 examples)"
    assert [name for name in dir(sealed) if not name.startswith("_")] == ["open"]
    assert not hasattr(sealed, "__dict__")
    sealed.open(tmp_path / "record.json", "model a")
    assert len(sealed) == 6


def test_a_copy_is_sealed_as_well(tmp_path: Path) -> None:
    sealed = SealedSplit(split())
    copied = copy.deepcopy(sealed)
    sealed.open(tmp_path / "record.json", "model a")
    with pytest.raises(RunDirectoryError):
        copied.open(tmp_path / "record.json", "model b")


# local_test


def local_stream(client: int) -> np.random.Generator:
    return stream(3, "local test", 0, client)


def test_a_local_test_split_by_hand() -> None:
    # 40 training examples, 20 test examples: client 0 has 30 (class 0: 20, class 1: 10) and gets 15: 10 and 5;
    # client 1 has 10 of class 1 and gets 5
    labels, test_labels = np.array([0] * 20 + [1] * 20), np.array([0] * 10 + [1] * 10)
    index = ClientIndex(np.array([0, 30, 40]), np.arange(40))
    found = local_test(index, labels, test_labels, local_stream)
    assert found.sizes.tolist() == [15, 5]
    assert np.bincount(test_labels[found.of(0)]).tolist() == [10, 5]
    assert np.bincount(test_labels[found.of(1)], minlength=2).tolist() == [0, 5]


def test_what_is_left_over_goes_to_the_largest_remainders() -> None:
    # 7 of 14 training examples (4, 2, 1), 10 test examples: 5 for this client; 5 * (4, 2, 1) / 7 = 2.86, 1.43, 0.71
    # floors 2, 1, 0; the two left go to class 0 (.86) and class 2 (.71)
    labels = np.array([0] * 4 + [1] * 2 + [2] + [0] * 7)
    test_labels = np.array([0] * 4 + [1] * 3 + [2] * 3)
    index = ClientIndex(np.array([0, 7, 14]), np.arange(14))
    found = local_test(index, labels, test_labels, local_stream)
    assert np.bincount(test_labels[found.of(0)], minlength=3).tolist() == [3, 1, 1]


def test_a_class_gives_what_it_has_and_a_small_client_gets_one() -> None:
    labels = np.array([0] * 99 + [1])
    index = ClientIndex(np.array([0, 99, 100, 100]), np.arange(100))
    test_labels = np.array([0] * 5 + [1] * 5)
    found = local_test(index, labels, test_labels, local_stream)
    # client 0 should have 10 of class 0, of which there are 5; client 1 has one example in a hundred and gets one
    assert found.sizes.tolist() == [5, 1, 0]
    assert test_labels[found.of(1)].tolist() == [1]


def test_a_class_that_the_test_split_lacks_gives_nothing() -> None:
    found = local_test(one_client([7, 7, 7]), np.array([7, 7, 7]), np.array([1, 1]), local_stream)
    assert found.sizes.tolist() == [0]


def test_local_test_splits_are_deterministic_and_each_client_draws_alone() -> None:
    rng = np.random.default_rng(0)
    labels, test_labels = rng.integers(0, 10, 600), rng.integers(0, 10, 150)
    index = Dirichlet(0.5, on_small="move").split(Examples(labels), 8, rng)
    one, other = (local_test(index, labels, test_labels, local_stream) for _ in range(2))
    assert one.digest == other.digest
    another = local_test(index, labels, test_labels, lambda client: stream(4, "local test", 0, client))
    assert another.digest != one.digest
    # the draw of a client depends on its own labels and stream alone: client 7 with all others merged into one
    merged = ClientIndex(np.array([0, index.offsets[7], 600]), index.indices)
    alone = local_test(merged, labels, test_labels, lambda client: local_stream(7 if client == 1 else 0))
    np.testing.assert_array_equal(alone.of(1), one.of(7))


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 200), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_local_test_splits_follow_the_proportions(clients: int, classes: int, num_test: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, test_labels = rng.integers(0, classes, 240), rng.integers(0, classes, num_test)
    owners = rng.integers(0, clients, 240)
    index = ClientIndex.from_owners(owners, clients)
    found = local_test(index, labels, test_labels, local_stream)
    there = np.bincount(test_labels, minlength=classes)
    for client in range(clients):
        own = np.bincount(labels[index.of(client)], minlength=classes)
        drawn = np.bincount(test_labels[found.of(client)], minlength=classes)
        assert len(set(found.of(client).tolist())) == len(found.of(client))  # without replacement
        if not own.sum():
            assert not drawn.any()
            continue
        wanted = max(1, int(np.floor(own.sum() * num_test / 240 + 0.5)))
        ideal = own * wanted / own.sum()
        assert (drawn <= np.ceil(ideal)).all()
        assert (drawn >= np.minimum(np.floor(ideal), there)).all()
        assert drawn.sum() <= wanted


def test_places_are_drawn_in_the_proportions_of_the_labels() -> None:
    labels = np.array([7, 3, 3, 3, 7, 3, 3, 3])  # two of 7, six of 3
    # 4 of 8: one 7, three 3; 3 of 8: 0.75 and 2.25, so one and two
    assert np.bincount(labels[draw(labels, 4, np.random.default_rng(0))])[[3, 7]].tolist() == [3, 1]
    assert np.bincount(labels[draw(labels, 3, np.random.default_rng(0))])[[3, 7]].tolist() == [2, 1]
    assert draw(labels, 8, np.random.default_rng(0)).tolist() == list(range(8))
    places = {tuple(draw(labels, 4, np.random.default_rng(seed)).tolist()) for seed in range(20)}
    assert len(places) > 5


def test_copies_are_held_out_together_or_not_at_all() -> None:
    # by hand: of the copies numbered 7 one is not held out, so none is
    held_out = np.array([True, False, True, True])
    assert together(held_out, np.array([7, 7, 3, 0])).tolist() == [False, False, True, True]
    index = ClientIndex(np.array([0, 40]), np.arange(40))
    labels, copies = np.zeros(40, np.int64), np.arange(40) // 2
    for seed in range(10):
        numbers = partial(first_numbers, seed, "validation")
        training, validation = hold_out(index, labels, 0.5, numbers, copies)
        assert not set(copies[training.indices].tolist()) & set(copies[validation.indices].tolist())
        assert len(training.indices) + len(validation.indices) == 40
        apart, _ = hold_out(index, labels, 0.5, numbers)
        assert set(apart.indices.tolist()) <= set(training.indices.tolist())
