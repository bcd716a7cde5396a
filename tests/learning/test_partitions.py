"""Partitions: every example dealt once, nobody too small, never a hang."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.core.randomness import stream
from fedreuse.learning import partitions as module
from fedreuse.learning.partitions import (
    ClientIndex,
    Dirichlet,
    Iid,
    IndexFile,
    Partition,
    Shards,
    partitions,
)

LABELS = np.arange(600) % 10
TEN_BY_SIX_THOUSAND = np.arange(60_000) % 10


def rng(seed: int = 1) -> np.random.Generator:
    return stream(seed, "partition")


def lists(index: ClientIndex) -> list[list[int]]:
    return [index.of(client).tolist() for client in range(index.num_clients)]


def write(path: Path, content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


# ClientIndex


def test_index_by_hand() -> None:
    # owners of examples 0..5: client 1 has 0 and 3, client 0 has 1, nobody has 2 and 5, client 3 has 4
    index = ClientIndex.from_owners(np.array([1, 0, -1, 1, 3, -1]), num_clients=4, redraws=2)
    assert index.offsets.tolist() == [0, 1, 3, 3, 4]
    assert index.indices.tolist() == [1, 0, 3, 4]
    assert lists(index) == [[1], [0, 3], [], [4]]
    assert index.sizes.tolist() == [1, 2, 0, 1]
    assert (index.num_clients, index.redraws) == (4, 2)


def test_index_is_a_read_only_view() -> None:
    index = ClientIndex.from_owners(np.array([1, 0, 1]), num_clients=2)
    assert np.shares_memory(index.of(1), index.indices)
    with pytest.raises(ValueError, match="read-only"):
        index.of(1)[0] = 5


@pytest.mark.parametrize("client", [-1, 2])
def test_index_of_a_stranger_is_an_error(client: int) -> None:
    with pytest.raises(IndexError, match=f"client {client} of 2"):
        ClientIndex.from_owners(np.array([1, 0, 1]), num_clients=2).of(client)


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3]])
def test_index_with_wrong_offsets_is_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="rise from 0 to the number of indices, 3"):
        ClientIndex(np.array(offsets, dtype=np.int64), np.arange(3))


def test_index_with_fractions_is_refused() -> None:
    with pytest.raises(ValueError, match="indices must be a list of whole numbers"):
        ClientIndex(np.array([0, 1]), np.array([0.5]))


def test_digest_follows_owners_and_not_the_width_of_the_numbers() -> None:
    base = ClientIndex(np.array([0, 1, 3]), np.array([0, 1, 2]))
    assert base.digest == ClientIndex(np.array([0, 1, 3], dtype=np.int32), np.array([0, 1, 2], dtype=np.int16)).digest
    assert base.digest != ClientIndex(np.array([0, 2, 3]), np.array([0, 1, 2])).digest
    assert base.digest != ClientIndex(np.array([0, 1, 3]), np.array([1, 0, 2])).digest


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    index = ClientIndex.from_owners(np.array([1, 0, -1, 1]), num_clients=3, redraws=4)
    path = tmp_path / "deep" / "partition.npz"
    index.save(path)
    index.save(path)
    loaded = ClientIndex.load(path)
    assert (loaded.digest, loaded.redraws) == (index.digest, 4)
    assert [file.name for file in path.parent.iterdir()] == ["partition.npz"]


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "partition.npz"
    old = ClientIndex.from_owners(np.array([0, 1]), num_clients=2)
    old.save(path)

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        ClientIndex.from_owners(np.array([1, 0]), num_clients=2).save(path)
    assert ClientIndex.load(path).digest == old.digest
    assert [file.name for file in tmp_path.iterdir()] == ["partition.npz"]


def test_files_that_are_no_index_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "foreign.npz", offsets=np.array([0]))
    np.savez(tmp_path / "crooked.npz", offsets=np.array([0, 9]), indices=np.arange(3))
    np.savez(tmp_path / "objects.npz", offsets=np.array([0, 1]), indices=np.array([{}], dtype=object))
    good = ClientIndex.from_owners(np.arange(1000) % 7, num_clients=7)
    good.save(tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "short.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.npz").write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:])
    for name in ("absent", "text", "foreign", "crooked", "objects", "short", "flipped"):
        with pytest.raises(DataError, match=rf"{name}\.npz: not a client index"):
            ClientIndex.load(tmp_path / f"{name}.npz")


# what every partition promises


def test_registered_names() -> None:
    assert partitions.names() == ["dirichlet", "iid", "index_file", "shards"]
    assert partitions.parse({"name": "dirichlet", "alpha": 0.5}, "task.partition") == Dirichlet(0.5)
    assert partitions.parse("iid", "task.partition") == Iid()


drawn_partitions = st.one_of(
    st.builds(Dirichlet, st.floats(0.001, 100), st.integers(1, 5), on_small=st.just("move")),
    st.builds(Iid, st.integers(1, 5)),
    st.builds(Shards, st.integers(1, 5)),
)


@settings(deadline=None)
@given(
    drawn_partitions,
    st.integers(1, 20),
    st.lists(st.integers(0, 6), min_size=100, max_size=300),
    st.integers(0, 99),
)
def test_every_example_has_one_owner_and_a_seed_decides_which(
    partition: Partition, num_clients: int, labels: list[int], seed: int
) -> None:
    index = partition.split(np.array(labels), num_clients, rng(seed))
    assert index.num_clients == num_clients
    assert sorted(index.indices.tolist()) == list(range(len(labels)))
    assert all(own == sorted(own) and own for own in lists(index))
    assert index.digest == partition.split(np.array(labels), num_clients, rng(seed)).digest


@pytest.mark.parametrize("partition", [Dirichlet(0.5), Iid(), Shards(), Dirichlet(0.1, on_small="move")])
def test_another_seed_is_another_partition(partition: Partition) -> None:
    assert partition.split(LABELS, 6, rng(1)).digest != partition.split(LABELS, 6, rng(2)).digest


@pytest.mark.parametrize("partition", [Dirichlet(1.0, min_examples=1), Iid(), Shards(1)])
def test_more_clients_than_examples_are_refused(partition: Partition) -> None:
    with pytest.raises(
        ConfigError, match=r"task\.partition: 601 clients \(task\.clients\).*there are 600; take at most 600"
    ):
        partition.split(LABELS, 601, rng())


@pytest.mark.parametrize("partition", [Dirichlet(1.0), Iid(), Shards()])
def test_no_clients_are_refused(partition: Partition) -> None:
    with pytest.raises(ConfigError, match=r"task\.clients must be at least 1, got 0"):
        partition.split(LABELS, 0, rng())


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "dirichlet", "alpha": 0},
        {"name": "dirichlet", "alpha": float("nan")},
        {"name": "dirichlet", "alpha": float("inf")},
        {"name": "dirichlet", "alpha": 1, "min_examples": 0},
        {"name": "dirichlet", "alpha": 1, "max_redraws": -1},
        {"name": "dirichlet", "alpha": 1, "on_small": "drop"},
        {"name": "iid", "min_examples": 0},
        {"name": "shards", "shards_per_client": 0},
        {"name": "shards", "min_examples": 0},
        {"name": "index_file", "path": "clients.txt"},
        {"name": "index_file", "path": "clients.json", "min_examples": 0},
    ],
)
def test_wrong_fields_are_refused_with_their_place(spec: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"^task\.partition.*, got "):
        partitions.parse(spec, "task.partition")


# dirichlet


class FixedProportions:
    """A generator whose Dirichlet draws are given, and which shuffles nothing."""

    def __init__(self, *draws: list[float]) -> None:
        self.draws = [np.array(draw) for draw in draws]

    def dirichlet(self, alpha: np.ndarray) -> np.ndarray:
        draw = self.draws.pop(0)
        assert len(draw) == len(alpha)
        return draw

    def permutation(self, members: np.ndarray) -> np.ndarray:
        return members

    def integers(self, high: int) -> int:
        return high - 1


def split_with(partition: Partition, labels: list[int], num_clients: int, *draws: list[float]) -> ClientIndex:
    return partition.split(np.array(labels), num_clients, FixedProportions(*draws))  # type: ignore[arg-type]


def test_dirichlet_by_hand() -> None:
    # class 0 is examples 0..3, cut at floor(4 * [.5, .8, 1]) = 2, 3, 4
    # class 1 is examples 4..8, cut at floor(5 * [.3, .5, 1]) = 1, 2, 5
    labels = [0, 0, 0, 0, 1, 1, 1, 1, 1]
    index = split_with(Dirichlet(1.0, min_examples=1), labels, 3, [0.5, 0.3, 0.2], [0.3, 0.2, 0.5])
    assert lists(index) == [[0, 1, 4], [2, 5], [3, 6, 7, 8]]
    assert index.redraws == 0


def test_dirichlet_draws_the_whole_partition_again_and_counts_it() -> None:
    labels = [0, 0, 0, 0]
    index = split_with(Dirichlet(1.0, min_examples=2), labels, 2, [1.0, 0.0], [0.25, 0.75], [0.5, 0.5])
    assert lists(index) == [[0, 1], [2, 3]]
    assert index.redraws == 2


def test_dirichlet_gives_up_after_max_redraws_and_tells_the_smallest_client() -> None:
    # three draws leave smallest clients of 0, 1 and 0 examples
    generator = FixedProportions([1.0, 0.0], [0.25, 0.75], [0.0, 1.0])
    with pytest.raises(ConfigError) as caught:
        Dirichlet(0.7, min_examples=2, max_redraws=2).split(np.zeros(4), 2, generator)  # type: ignore[arg-type]
    assert not generator.draws
    message = str(caught.value)
    assert "alpha 0.7 over 2 clients (task.clients)" in message
    assert "below min_examples 2 in all 3 draws" in message
    assert "smallest client had 1 examples at best" in message
    assert "larger alpha, fewer clients, a smaller min_examples, or on_small: move" in message


def test_dirichlet_cuts_lose_nobody_to_rounding() -> None:
    # the cumulative sum of ten tenths is 0.99... at the eighth and the last: one example each all the same
    index = split_with(Dirichlet(1.0, min_examples=1), [0] * 10, 10, [0.1] * 10)
    assert index.sizes.tolist() == [1] * 10
    assert split_with(Dirichlet(1.0, min_examples=1), [0] * 10, 2, [0.5, 0.4]).sizes.tolist() == [5, 5]


def test_dirichlet_shuffles_a_class_before_it_is_cut() -> None:
    own = Dirichlet(1e9).split(np.zeros(100), 2, rng()).of(0)
    assert own.max() > 60  # the first fifty would end at 49


@pytest.mark.parametrize("draw", [[float("nan")] * 3, [0.0] * 3])
def test_a_draw_that_underflows_gives_the_class_to_one_client(draw: list[float]) -> None:
    partition = Dirichlet(0.01, min_examples=1, max_redraws=0)
    with pytest.raises(ConfigError, match="had 0 examples at best"):
        split_with(partition, [0] * 6, 3, draw)
    assert module._proportions(0.01, 3, FixedProportions(draw)).tolist() == [0, 0, 1]  # type: ignore[arg-type]
    assert module._proportions(5.0, 3, FixedProportions(draw)).tolist() == [1 / 3] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [5e-324, 1e-310, 1e-200, 1e-9])
def test_a_vanishing_alpha_gives_each_class_to_one_client_without_preference(alpha: float) -> None:
    # 1,000 draws over 4 clients: 250 each, standard deviation 13.7
    generator = rng()
    alone = [module._proportions(alpha, 4, generator) for _ in range(1000)]
    assert all(draw.max() == pytest.approx(1) for draw in alone)
    assert np.abs(np.bincount([draw.argmax() for draw in alone], minlength=4) - 250).max() < 5 * 13.7


@pytest.mark.parametrize("alpha", [1e12, 1.7e308])
def test_a_huge_alpha_is_even(alpha: float) -> None:
    # ten classes of 60 over 7 clients, each cut at floor(60 k / 7) = 8, 17, 25, 34, 42, 51, 60
    assert Dirichlet(alpha).split(LABELS, 7, rng()).sizes.tolist() == [80, 90, 80, 90, 80, 90, 90]


def test_dirichlet_sizes_are_those_of_the_method_sheet() -> None:
    # 10 x 6000 over 50 clients at 0.5: smallest client 341 in the median, largest 2638
    draws = [Dirichlet(0.5).split(TEN_BY_SIX_THOUSAND, 50, rng(seed)).sizes for seed in range(40)]
    assert np.median([sizes.min() for sizes in draws]) == pytest.approx(341, rel=0.2)
    assert np.median([sizes.max() for sizes in draws]) == pytest.approx(2638, rel=0.1)


def test_a_thousand_clients_at_a_hundredth_end_at_once_either_way() -> None:
    with pytest.raises(ConfigError, match=r"alpha 0\.01 over 1000 clients .* in all 101 draws"):
        Dirichlet(0.01).split(TEN_BY_SIX_THOUSAND, 1000, rng())
    index = Dirichlet(0.01, on_small="move").split(TEN_BY_SIX_THOUSAND, 1000, rng())
    assert index.sizes.min() == 10


def test_what_counting_rules_out_is_refused_before_any_draw() -> None:
    with pytest.raises(
        ConfigError, match=r"7000 clients .* need 70000, but there are 60000; take at most 6000 clients"
    ):
        Dirichlet(0.01).split(TEN_BY_SIX_THOUSAND, 7000, None)  # type: ignore[arg-type]


def test_the_work_of_redrawing_is_bounded_whatever_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    # 10 classes x 50 clients = 500 proportions a draw, so 2,600 pay for five redraws
    monkeypatch.setattr(module, "MAX_PROPORTIONS", 2600)
    with pytest.raises(ConfigError, match="in all 6 draws"):
        Dirichlet(0.001, max_redraws=10**9).split(LABELS, 50, rng())


def naive_move(sizes: list[int], min_examples: int) -> list[int]:
    left = list(sizes)
    for _ in range(sum(max(min_examples - size, 0) for size in sizes)):
        left[left.index(max(left))] -= 1
    return left


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(1, 8))
def test_moving_takes_one_by_one_from_the_largest(sizes: list[int], min_examples: int) -> None:
    if sum(sizes) < min_examples * len(sizes):
        sizes[0] += min_examples * len(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    moved = module._move_to_small(owners, len(sizes), min_examples)
    after = np.bincount(moved, minlength=len(sizes))
    expected = np.maximum(naive_move(sizes, min_examples), np.minimum(min_examples, after))
    assert after.tolist() == expected.tolist()
    assert after.min() >= min_examples
    stayed_or_small = (moved == owners) | (np.array(sizes)[moved] < min_examples)
    assert stayed_or_small.all()


def test_moving_by_hand() -> None:
    # sizes 6, 1, 5 with 3 wanted: client 0, the largest, gives one; then 0 and 2 have 5 each, and 0 gives
    # again as the lower id. Its two are evenly spaced over its six: the first and the fourth.
    owners = np.array([0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2])
    assert module._move_to_small(owners, 3, 3).tolist() == [1, 0, 0, 1, 0, 0, 1, 2, 2, 2, 2, 2]


def test_moving_leaves_a_good_partition_alone() -> None:
    moved = Dirichlet(0.5, on_small="move").split(TEN_BY_SIX_THOUSAND, 50, rng())
    assert moved.digest == Dirichlet(0.5).split(TEN_BY_SIX_THOUSAND, 50, rng()).digest
    assert moved.redraws == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_redrawn_partitions_respect_the_minimum(seed: int) -> None:
    index = Dirichlet(0.3, min_examples=20, max_redraws=1000).split(LABELS, 5, rng(seed))
    assert index.sizes.min() >= 20


def test_alpha_decides_the_skew() -> None:
    def largest_class_share(alpha: float) -> float:
        index = Dirichlet(alpha, on_small="move").split(TEN_BY_SIX_THOUSAND, 20, rng())
        counts = [np.bincount(TEN_BY_SIX_THOUSAND[index.of(client)], minlength=10) for client in range(20)]
        return float(np.mean([count.max() / count.sum() for count in counts]))

    assert largest_class_share(0.05) > largest_class_share(0.5) > largest_class_share(50.0) > 0.1


# iid, shards


def test_iid_sizes_differ_by_one_at_most() -> None:
    # 11 over 4: ends at floor(11 k / 4) = 2, 5, 8, 11
    assert Iid().split(np.zeros(11, dtype=np.int64), 4, rng()).sizes.tolist() == [2, 3, 3, 3]


def test_iid_ignores_labels() -> None:
    other = np.zeros_like(LABELS)
    assert Iid().split(LABELS, 7, rng()).digest == Iid().split(other, 7, rng()).digest


def test_a_million_clients() -> None:
    labels = np.arange(1_200_000) % 10
    index = Iid().split(labels, 1_000_000, rng())
    assert index.num_clients == 1_000_000
    assert set(np.unique(index.sizes).tolist()) == {1, 2}


class Unshuffled:
    """A generator that deals in order."""

    def permutation(self, count: int) -> np.ndarray:
        return np.arange(count)


def test_shards_by_hand() -> None:
    # sorted by label: examples 1 3 5 | 0 2 4; six shards of one each, two per client in order
    labels = np.array([1, 0, 1, 0, 1, 0])
    index = Shards(2).split(labels, 3, Unshuffled())  # type: ignore[arg-type]
    assert lists(index) == [[1, 3], [0, 5], [2, 4]]


def test_shards_bound_the_number_of_classes() -> None:
    # 600 examples, 20 shards of 30, 60 per class: no shard straddles two classes
    index = Shards(2).split(LABELS, 10, rng())
    classes = [len(np.unique(LABELS[index.of(client)])) for client in range(10)]
    assert max(classes) == 2
    assert index.sizes.tolist() == [60] * 10


def test_shards_need_an_example_each_and_the_minimum() -> None:
    with pytest.raises(ConfigError, match=r"with at least 3 examples each need 603"):
        Shards(3).split(LABELS, 201, rng())
    # 2 clients with 6 each would need 12
    with pytest.raises(ConfigError, match=r"there are 11"):
        Shards(2, min_examples=6).split(np.zeros(11, dtype=np.int64), 2, rng())


def test_shards_refuse_a_client_that_uneven_shards_leave_too_small() -> None:
    # 15 examples in 6 shards of 2 3 2 3 2 3; the client that is dealt the first and the third has 4
    with pytest.raises(ConfigError, match="client 0 has 4 examples, below min_examples 5; take fewer clients"):
        Shards(2, min_examples=5).split(np.zeros(15, dtype=np.int64), 3, Skewed())  # type: ignore[arg-type]


class Skewed:
    """A generator that deals the first and the third shard to the first client."""

    def permutation(self, count: int) -> np.ndarray:
        assert count == 6
        return np.array([0, 2, 1, 3, 4, 5])


# index_file


def test_index_file_from_json_and_npz(tmp_path: Path) -> None:
    wanted = [[5, 1], [0, 2, 3]]
    npz = tmp_path / "clients.npz"
    ClientIndex(np.array([0, 2, 5]), np.array([5, 1, 0, 2, 3]), redraws=3).save(npz)
    for path in (
        write(tmp_path / "list.json", wanted),
        write(tmp_path / "map.json", {"clients": wanted}),
        str(npz),
    ):
        index = IndexFile(path).split(np.zeros(6), 2, rng())
        assert lists(index) == [[1, 5], [0, 2, 3]]  # ascending; example 4 stays unused
    assert index.redraws == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([[0], [1], [2]], r"lists 3 clients, but task\.clients is 2; set task\.clients: 3"),
        ([[0, 1], [6]], "client 1 has example 6, but the training examples are 0 to 5"),
        ([[0, -1], [2]], "client 0 has example -1"),
        ([[0, 3], [2, 3]], "example 3 belongs to client 0 and again to client 1"),
        ([[0, 3, 0], [2]], "example 0 belongs to client 0 and again to client 0"),
        ([[0], []], "client 1 has 0 examples, below min_examples 1; mend the file"),
        ([[0], [1.0]], r"1\.0 is not an example number"),
        ([[0], [True]], "True is not an example number"),
        ([[0], ["1"]], "'1' is not an example number"),
        ([[0], [2**70]], "is not an example number"),
        ([0, 1], "must hold one list of example numbers per client"),
        ({"rows": []}, "must hold one list of example numbers per client"),
        ("x", "must hold one list of example numbers per client"),
    ],
)
def test_wrong_index_files_are_refused(tmp_path: Path, content: object, message: str) -> None:
    path = write(tmp_path / "clients.json", content)
    with pytest.raises(ConfigError, match=rf"^task\.partition\.path: .*clients\.json.*{message}"):
        IndexFile(path).split(np.zeros(6), 2, rng())


@pytest.mark.parametrize("name", ["absent.json", "absent.npz", "broken.json", "broken.npz"])
def test_unreadable_index_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.json").write_text("[[0], [1")
    (tmp_path / "broken.npz").write_text("PK")
    with pytest.raises(ConfigError, match=rf"^task\.partition\.path: .*{name}"):
        IndexFile(str(tmp_path / name)).split(np.zeros(6), 2, rng())
