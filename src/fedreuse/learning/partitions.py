"""How training examples are dealt to clients: one owner for every example."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from fedreuse.core.errors import ConfigError, DataError, require
from fedreuse.core.files import write_whole
from fedreuse.core.registry import Registry
from fedreuse.learning.data import digest_of

__all__ = ["ClientIndex", "Dirichlet", "Iid", "IndexFile", "Partition", "Shards", "partitions"]

MAX_PROPORTIONS = 10_000_000  # drawn in all redraws of one partition: a second or two, however many clients


@dataclass(frozen=True, eq=False)
class ClientIndex:
    """Who has which examples: client i has `indices[offsets[i]:offsets[i + 1]]`; the arrays are read-only."""

    offsets: np.ndarray
    indices: np.ndarray
    redraws: int = 0

    def __post_init__(self) -> None:
        """Offsets rise from zero to the number of indices."""
        for name in ("offsets", "indices"):
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise ValueError(f"{name} must be a list of whole numbers, got {array.dtype} of shape {array.shape}")
            view = np.ascontiguousarray(array, dtype=np.int64).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)
        cuts = self.offsets
        if not len(cuts) or cuts[0] != 0 or cuts[-1] != len(self.indices) or (np.diff(cuts) < 0).any():
            raise ValueError(f"offsets must rise from 0 to the number of indices, {len(self.indices)}")

    @classmethod
    def from_owners(cls, owners: np.ndarray, num_clients: int, redraws: int = 0) -> ClientIndex:
        """Group examples by the client that owns each (-1: nobody), ascending within a client."""
        num_unowned = int(np.count_nonzero(owners < 0))
        grouped = np.argsort(owners, kind="stable")[num_unowned:]
        sizes = np.bincount(owners[grouped], minlength=num_clients)
        return cls(_starts(sizes), grouped, redraws)

    @property
    def num_clients(self) -> int:
        """Number of clients, empty ones included."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of examples of each client."""
        return np.diff(self.offsets)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of who has what."""
        return digest_of(self.offsets, self.indices)

    def of(self, client: int) -> np.ndarray:
        """The examples of one client, as a view."""
        if not 0 <= client < self.num_clients:
            raise IndexError(f"client {client} of {self.num_clients}")
        view: np.ndarray = self.indices[self.offsets[client] : self.offsets[client + 1]]
        return view

    def save(self, path: Path) -> None:
        """Write an npz file that appears whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = BytesIO()
        np.savez(content, offsets=self.offsets, indices=self.indices, redraws=np.int64(self.redraws))
        write_whole(path, content.getbuffer())

    @classmethod
    def load(cls, path: Path) -> ClientIndex:
        """Read what `save` wrote; `redraws` may be absent in a file of another origin."""
        try:
            if not zipfile.is_zipfile(path):
                raise ValueError("not an npz file" if path.exists() else "no such file")
            with np.load(path, allow_pickle=False) as arrays:
                redraws = int(arrays["redraws"]) if "redraws" in arrays else 0
                return cls(arrays["offsets"], arrays["indices"], redraws)
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(
                f"{path}: not a client index ({error}); it needs the arrays offsets and indices, "
                "as ClientIndex.save writes them"
            ) from None


class Partition(Protocol):
    """A rule that deals training examples to clients."""

    def split(self, labels: np.ndarray, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Deal the examples with these labels; the same generator gives the same answer."""
        ...


partitions: Registry[Partition] = Registry("partitions", "fedreuse.learning.partitions")


@partitions.register("dirichlet")
@dataclass(frozen=True)
class Dirichlet:
    """Label skew: each class is cut over the clients in proportions from a symmetric Dirichlet distribution.

    Proportions p ~ Dir(alpha, ..., alpha) are drawn per class, and the shuffled class is cut at
    floor(cumsum(p) * examples of the class); nothing is balanced. If that leaves a client below
    `min_examples`, `redraw` draws the whole partition again (at most `max_redraws` times, and ten million
    proportions in all), and `move` completes it from the largest clients: one example at a time from the
    client that is largest then, the lowest id among equals, and evenly spaced over what that client had.
    """

    alpha: float
    min_examples: int = 10
    max_redraws: int = 100
    on_small: Literal["redraw", "move"] = "redraw"

    def __post_init__(self) -> None:
        """Refuse values that no draw could satisfy."""
        require(
            self.alpha > 0 and math.isfinite(self.alpha),
            "dirichlet.alpha must be above 0 and finite (no skew at all is the partition iid)",
            self.alpha,
        )
        require(self.min_examples >= 1, "dirichlet.min_examples must be at least 1", self.min_examples)
        require(self.max_redraws >= 0, "dirichlet.max_redraws must be at least 0", self.max_redraws)
        require(self.on_small in ("redraw", "move"), "dirichlet.on_small must be redraw or move", self.on_small)

    def split(self, labels: np.ndarray, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Draw the cuts until nobody is too small, then shuffle each class and cut it."""
        _require_enough(len(labels), num_clients, self.min_examples)
        class_sizes, by_class = _by_class(labels)
        cut, redraws = self._draw(class_sizes, num_clients, rng)
        owners = np.empty(len(labels), dtype=np.int64)
        for members, owners_of_class in zip(by_class, cut, strict=True):
            owners[rng.permutation(members)] = owners_of_class
        if self.on_small == "move":
            owners = _move_to_small(owners, num_clients, self.min_examples)
        return ClientIndex.from_owners(owners, num_clients, redraws)

    def _draw(self, class_sizes: list[int], num_clients: int, rng: np.random.Generator) -> tuple[list[np.ndarray], int]:
        """Owners of the shuffled examples of each class, and how often they were drawn again."""
        affordable = MAX_PROPORTIONS // (len(class_sizes) * num_clients)
        num_redraws = min(self.max_redraws, affordable)
        best = 0
        for redraws in range(num_redraws + 1):
            cut = [_cut_class(self.alpha, size, num_clients, rng) for size in class_sizes]
            smallest = int(np.bincount(np.concatenate(cut), minlength=num_clients).min())
            if smallest >= self.min_examples or self.on_small == "move":
                return cut, redraws
            best = max(best, smallest)
        raise ConfigError(
            f"task.partition: dirichlet with alpha {self.alpha} over {num_clients} clients (task.clients) "
            f"left somebody below min_examples {self.min_examples} in all {num_redraws + 1} draws; the "
            f"smallest client had {best} examples at best. Take a larger alpha, fewer clients, a smaller "
            "min_examples, or on_small: move"
        )


@partitions.register("iid")
@dataclass(frozen=True)
class Iid:
    """No skew: the shuffled examples are cut into pieces whose sizes differ by one at most."""

    min_examples: int = 1

    def __post_init__(self) -> None:
        """Nobody may be empty."""
        require(self.min_examples >= 1, "iid.min_examples must be at least 1", self.min_examples)

    def split(self, labels: np.ndarray, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Shuffle and cut."""
        _require_enough(len(labels), num_clients, self.min_examples)
        owners = np.empty(len(labels), dtype=np.int64)
        owners[rng.permutation(len(labels))] = _even_pieces(len(labels), num_clients)
        return ClientIndex.from_owners(owners, num_clients)


@partitions.register("shards")
@dataclass(frozen=True)
class Shards:
    """Few classes per client: the examples sorted by label are cut into equal shards, dealt at random."""

    shards_per_client: int = 2
    min_examples: int = 1

    def __post_init__(self) -> None:
        """Nobody may be empty."""
        require(self.shards_per_client >= 1, "shards.shards_per_client must be at least 1", self.shards_per_client)
        require(self.min_examples >= 1, "shards.min_examples must be at least 1", self.min_examples)

    def split(self, labels: np.ndarray, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Sort, cut and deal."""
        num_shards = num_clients * self.shards_per_client
        _require_enough(len(labels), num_clients, max(self.shards_per_client, self.min_examples))
        dealt_to = np.empty(num_shards, dtype=np.int64)
        dealt_to[rng.permutation(num_shards)] = np.repeat(np.arange(num_clients), self.shards_per_client)
        owners = np.empty(len(labels), dtype=np.int64)
        owners[np.argsort(labels, kind="stable")] = dealt_to[_even_pieces(len(labels), num_shards)]
        index = ClientIndex.from_owners(owners, num_clients)
        _require_sizes(index, self.min_examples, "task.partition", "take fewer clients or fewer shards_per_client")
        return index


@partitions.register("index_file")
@dataclass(frozen=True)
class IndexFile:
    """A partition made elsewhere, read from a file.

    The file is JSON, one list of example numbers per client ([[0, 5], [1, 2, 3]], alone or under the key
    `clients`), or an npz as ClientIndex.save writes it. Examples that nobody has stay unused.
    """

    path: str
    min_examples: int = 1

    def __post_init__(self) -> None:
        """Nobody may be empty."""
        require(self.path.endswith((".json", ".npz")), "index_file.path must end in .json or .npz", self.path)
        require(self.min_examples >= 1, "index_file.min_examples must be at least 1", self.min_examples)

    def split(
        self,
        labels: np.ndarray,
        num_clients: int,
        rng: np.random.Generator,  # noqa: ARG002 - nothing is drawn
    ) -> ClientIndex:
        """Read the file and check it against the data."""
        where = f"task.partition.path: {self.path}"
        listed = self._read(where)
        if listed.num_clients != num_clients:
            raise ConfigError(
                f"{where} lists {listed.num_clients} clients, but task.clients is {num_clients}; "
                f"set task.clients: {listed.num_clients}, or name the file that fits"
            )
        owners = _owners_of(listed, len(labels), where)
        _require_sizes(listed, self.min_examples, where, "mend the file, or lower min_examples")
        return ClientIndex.from_owners(owners, num_clients, listed.redraws)

    def _read(self, where: str) -> ClientIndex:
        path = Path(self.path).expanduser()
        if self.path.endswith(".npz"):
            try:
                return ClientIndex.load(path)
            except DataError as error:
                raise ConfigError(f"task.partition.path: {error}") from None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{where} cannot be read as JSON ({error}); mend the path or the file") from None
        lists = content.get("clients") if isinstance(content, dict) else content
        if not isinstance(lists, list) or not all(isinstance(one, list) for one in lists):
            raise ConfigError(f"{where} must hold one list of example numbers per client, [[0, 5], [1, 2, 3]]")
        flat = list(chain.from_iterable(lists))
        for value in flat:
            if type(value) is not int or abs(value) >= 2**63:
                raise ConfigError(f"{where}: {value!r} is not an example number; whole numbers from 0 are")
        sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        return ClientIndex(_starts(sizes), np.array(flat, dtype=np.int64))


def _cut_class(alpha: float, num_examples: int, num_clients: int, rng: np.random.Generator) -> np.ndarray:
    """The owner of each of a class's shuffled examples: proportions cut by cumulative sum."""
    cuts = np.cumsum(_proportions(alpha, num_clients, rng)) * num_examples
    ends = np.minimum(np.floor(cuts + 1e-9), num_examples).astype(np.int64)
    ends[-1] = num_examples
    return np.repeat(np.arange(num_clients), np.diff(ends, prepend=0))


def _proportions(alpha: float, num_clients: int, rng: np.random.Generator) -> np.ndarray:
    """One symmetric Dirichlet draw; where floats give out, its limit: one has all, or all have the same."""
    if 1e-300 < alpha < 1e300:
        drawn = rng.dirichlet(np.full(num_clients, alpha))
        if np.isfinite(drawn).all() and drawn.sum() > 0:
            return drawn
    if alpha >= 1:
        return np.full(num_clients, 1 / num_clients)
    alone = np.zeros(num_clients)
    alone[rng.integers(num_clients)] = 1.0
    return alone


def _move_to_small(owners: np.ndarray, num_clients: int, min_examples: int) -> np.ndarray:
    """Owners after the largest clients have filled everybody up to `min_examples`."""
    sizes = np.bincount(owners, minlength=num_clients)
    wanted = np.maximum(min_examples - sizes, 0)
    given = _given(sizes, int(wanted.sum()), min_examples)
    giver = np.repeat(np.arange(num_clients), given)
    nth = np.arange(len(giver)) - np.repeat(_starts(given)[:-1], given)
    places = _starts(sizes)[giver] + nth * sizes[giver] // given[giver]
    moved = owners.copy()
    moved[np.argsort(owners, kind="stable")[places]] = np.repeat(np.arange(num_clients), wanted)
    return moved


def _given(sizes: np.ndarray, total: int, floor: int) -> np.ndarray:
    """What each client gives if `total` examples leave one by one, from the largest, lowest id first."""
    low, high = floor, int(sizes.max()) + 1  # everything above `level` is enough at low, too little at high
    while high - low > 1:
        level = (low + high) // 2
        low, high = (level, high) if np.maximum(sizes - level, 0).sum() >= total else (low, level)
    given: np.ndarray = np.maximum(sizes - low, 0)
    surplus = int(given.sum()) - total
    if surplus:
        given[np.flatnonzero(given)[-surplus:]] -= 1
    return given


def _owners_of(listed: ClientIndex, num_examples: int, where: str) -> np.ndarray:
    """The owner of each example, refusing numbers outside the data and examples with two owners."""
    client_of = np.repeat(np.arange(listed.num_clients), listed.sizes)
    outside = np.flatnonzero((listed.indices < 0) | (listed.indices >= num_examples))
    if len(outside):
        raise ConfigError(
            f"{where}: client {client_of[outside[0]]} has example {listed.indices[outside[0]]}, but "
            f"the training examples are 0 to {num_examples - 1}; mend the file, or take its dataset"
        )
    owners = np.full(num_examples, -1, dtype=np.int64)
    owners[listed.indices] = client_of
    times = np.bincount(listed.indices, minlength=num_examples)
    if (times > 1).any():
        example = int(np.argmax(times > 1))
        first, second = client_of[listed.indices == example][:2]
        raise ConfigError(
            f"{where}: example {example} belongs to client {first} and again to client {second}; "
            "an example has one owner, so mend the file"
        )
    return owners


def _by_class(labels: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    """Size and members of each class that occurs, in the order of the labels."""
    _, sizes = np.unique(labels, return_counts=True)
    return sizes.tolist(), np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])


def _even_pieces(num_items: int, num_pieces: int) -> np.ndarray:
    """The piece of each item when items are cut as evenly as whole numbers allow."""
    return np.repeat(np.arange(num_pieces), np.diff(np.arange(num_pieces + 1) * num_items // num_pieces))


def _starts(sizes: np.ndarray) -> np.ndarray:
    """Where each run of the given size starts, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])


def _require_enough(num_examples: int, num_clients: int, min_examples: int) -> None:
    """Refuse at once what counting rules out."""
    require(num_clients >= 1, "task.clients must be at least 1", num_clients)
    if num_clients * min_examples > num_examples:
        raise ConfigError(
            f"task.partition: {num_clients} clients (task.clients) with at least {min_examples} examples "
            f"each need {num_clients * min_examples}, but there are {num_examples}; take at most "
            f"{num_examples // min_examples} clients, fewer examples per client, or more data"
        )


def _require_sizes(index: ClientIndex, min_examples: int, where: str, way_out: str) -> None:
    """Refuse a client that has too little."""
    smallest = int(np.argmin(index.sizes))
    if index.sizes[smallest] < min_examples:
        raise ConfigError(
            f"{where}: client {smallest} has {index.sizes[smallest]} examples, "
            f"below min_examples {min_examples}; {way_out}"
        )
