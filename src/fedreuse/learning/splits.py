"""Held-out examples: a validation share of every client, and a test split that opens once per run."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.checked import parse_checked, with_check
from fedreuse.core.errors import RunDirectoryError, require
from fedreuse.core.files import write_whole
from fedreuse.learning.data import digest_of
from fedreuse.learning.partitions import ClientIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fedreuse.learning.data import Split

__all__ = ["Opening", "SealedSplit", "draw", "hold_out", "local_test", "together"]


def hold_out(
    index: ClientIndex,
    labels: np.ndarray,
    share: float,
    numbers_of: Callable[[Sequence[int], np.ndarray], np.ndarray],
    copies: np.ndarray | None = None,
) -> tuple[ClientIndex, ClientIndex]:
    """Divide the examples of every client into training and validation, stratified by label.

    A client with n examples holds out round(share * n), halves up, but never its last training example; so a client
    with one example holds out nothing, and with share 0.1 neither does a client with four or fewer. Of that number, a
    class with n_c examples provides floor(share * n_c); the rest comes one each from the classes with the largest
    fractional parts, and among equal ones from a class drawn at random, so that small clients do not all hold out the
    lowest label. The examples within a class are drawn at random too.

    Args:
        index: Examples of every client.
        labels: Class of every training example.
        share: Share to hold out, in [0, 1); rounded to a fraction with a denominator of at most a million, so that
            counts are exact.
        numbers_of: `numbers_of(clients, counts)` returns the first `counts[i]` random numbers of the stream of
            `clients[i]`, concatenated; called only with the clients that hold out something.
        copies: Number of each example, equal for exact copies, which are held out together or not at all.

    Returns:
        Training and validation examples.

    Raises:
        ConfigError: The share is out of range.
    """
    require(0 <= share < 1, "task.validation must be at least 0 and below 1", share)
    # exact fractions: 0.1 * 30 must be 3, not 2.9999
    ratio = min(Fraction(str(share)).limit_denominator(10**6), Fraction(999_999, 10**6))
    counts = _counts(index.sizes, ratio)
    if not counts.any():
        return index, ClientIndex(np.zeros_like(index.offsets), np.empty(0, dtype=np.int64), index.redraws)
    is_held_out = _choose(index, labels[index.indices], counts, ratio, _draw_keys(index, counts, numbers_of))
    if copies is not None:
        is_held_out = together(is_held_out, copies[index.indices])
    return _subset(index, ~is_held_out), _subset(index, is_held_out)


def together(is_held_out: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """Return the selection without examples of which a copy is not selected."""
    num_all = np.bincount(copies)
    num_held_out = np.bincount(copies[is_held_out], minlength=len(num_all))
    whole: np.ndarray = is_held_out & (num_all == num_held_out)[copies]
    return whole


def local_test(
    index: ClientIndex, labels: np.ndarray, test_labels: np.ndarray, rng_of: Callable[[int], np.random.Generator]
) -> ClientIndex:
    """Draw examples of a test split for every client, with the label proportions of its training examples.

    A client with n of all N training examples gets round(n T / N) of the T test examples, halves up, at least one. They
    are divided among its classes by largest remainder, equal ones in random order; a class gives at most all its
    examples. A client has no example twice, but two clients may have the same. Clients without training examples get
    none. `rng_of(client)` is the client's random stream.
    """
    classes, class_of = np.unique(np.concatenate([labels, test_labels]), return_inverse=True)
    own, tested = class_of[: len(labels)], class_of[len(labels) :]
    members = [np.flatnonzero(tested == number) for number in range(len(classes))]
    total = int(index.sizes.sum())
    chosen = []
    for client in range(index.num_clients):
        counts = np.bincount(own[index.of(client)], minlength=len(classes))
        num_own = int(counts.sum())
        if not num_own:
            chosen.append(np.empty(0, dtype=np.int64))
            continue
        rng = rng_of(client)
        num_test = max(1, (2 * num_own * len(tested) + total) // (2 * total))
        shares, remainders = np.divmod(counts * num_test, num_own)
        # largest remainder: the examples still missing go to the classes that were rounded down most
        first = np.lexsort((rng.random(len(classes)), -remainders))[: num_test - int(shares.sum())]
        shares[first] += 1
        drawn = [rng.permutation(of_class)[:share] for of_class, share in zip(members, shares, strict=True) if share]
        chosen.append(np.sort(np.concatenate(drawn)))
    sizes = [len(positions) for positions in chosen]
    return ClientIndex(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(chosen))


def draw(labels: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `count` positions in the proportions of the labels, by largest remainder, equal ones in random order.

    The positions are returned in ascending order.
    """
    _, class_of, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    shares, remainders = np.divmod(sizes * count, len(labels))
    first = np.lexsort((rng.random(len(sizes)), -remainders))[: count - int(shares.sum())]
    shares[first] += 1
    of_classes = [rng.permutation(np.flatnonzero(class_of == number))[:share] for number, share in enumerate(shares)]
    return np.sort(np.concatenate(of_classes))


class SealedSplit:
    """A test split that can be opened once per run; before that only its size is accessible."""

    __slots__ = ("__num_examples", "__split")

    def __init__(self, split: Split) -> None:
        """Seal a split."""
        self.__split: Split | None = split
        self.__num_examples = len(split)

    def __len__(self) -> int:
        """Number of examples."""
        return self.__num_examples

    def __repr__(self) -> str:
        """Return the number of examples."""
        return f"SealedSplit({len(self)} examples)"

    def open(self, record: Path, model_digest: str, note: Callable[[str], object] = str) -> Opening:
        """Record the opening for one model and return the split; a second opening is refused.

        A run that crashed between the opening and its result resumes with the same model, bit for bit, and may finish
        the same evaluation, because it shows nothing that the first one did not.

        Args:
            record: File that records the opening.
            model_digest: Digest of the model to evaluate.
            note: Called with the digest of the examples before the split is opened, to count openings elsewhere; if it
                raises, the split stays closed.

        Raises:
            RunDirectoryError: The split was opened before for another model, or the record cannot be written.
        """
        if self.__split is None:
            raise RunDirectoryError(f"{record}: this test split is open already; one run evaluates on it once")
        split = self.__split
        content = with_check(
            {
                "opened": datetime.now(UTC).isoformat(),
                "digest": digest_of(split.inputs, split.labels),
                "examples": len(split),
                "model": model_digest,
            }
        )
        note(str(content["digest"]))
        earlier = _write_record(record, content)
        self.__split = None
        return Opening(split, record, earlier or content)


class Opening:
    """The only evaluation on a test split: the examples, and the result once it is recorded."""

    def __init__(self, split: Split, record: Path, content: dict[str, Any]) -> None:
        """Only `SealedSplit.open` makes an opening."""
        self._split = split
        self._path = record
        self._content = content

    @property
    def split(self) -> Split:
        """The examples, until the result is recorded."""
        if self.result is not None:
            raise RunDirectoryError(f"{self._path}: the result is recorded already; one run evaluates on it once")
        return self._split

    @property
    def result(self) -> dict[str, Any] | None:
        """The recorded result, or None."""
        return self._content.get("result")

    def record(self, result: dict[str, Any]) -> None:
        """Write the result into the record of the opening."""
        self._content = with_check({**self._content, "result": result})
        write_whole(self._path, json.dumps(self._content).encode())


def _counts(sizes: np.ndarray, ratio: Fraction) -> np.ndarray:
    """Return the number of examples that each client holds out."""
    nearest = (2 * sizes * ratio.numerator + ratio.denominator) // (2 * ratio.denominator)
    counts: np.ndarray = np.minimum(nearest, np.maximum(sizes - 1, 0))
    return counts


def _draw_keys(
    index: ClientIndex, counts: np.ndarray, numbers_of: Callable[[Sequence[int], np.ndarray], np.ndarray]
) -> np.ndarray:
    """Draw a random number for every example of the clients that hold out something."""
    keys = np.zeros(len(index.indices))
    holders = np.flatnonzero(counts)
    keys[np.repeat(counts > 0, index.sizes)] = numbers_of(holders.tolist(), index.sizes[holders])
    return keys


def _choose(
    index: ClientIndex, labels: np.ndarray, counts: np.ndarray, ratio: Fraction, keys: np.ndarray
) -> np.ndarray:
    """Select the held-out entries of the index, for all clients at once; a group is one class at one client."""
    client_of = np.repeat(np.arange(index.num_clients), index.sizes)
    order = np.lexsort((keys, labels, client_of))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (np.diff(client_of[order]) != 0) | (np.diff(labels[order]) != 0)
    starts = np.flatnonzero(is_first)
    group_of = np.cumsum(is_first) - 1
    client_of_group = client_of[order[starts]]

    # examples that each group gives, and the fraction that was rounded off
    taken, remainder = np.divmod(np.bincount(group_of) * ratio.numerator, ratio.denominator)
    missing = counts.copy()
    np.subtract.at(missing, client_of_group, taken)
    # each client's missing examples come from its groups with the largest remainders, one each
    ranked = np.lexsort((keys[order[starts]], -remainder, client_of_group))
    groups_before = np.searchsorted(client_of_group, client_of_group)  # groups are sorted by client
    rank = np.empty_like(ranked)
    rank[ranked] = np.arange(len(ranked)) - groups_before
    taken += rank < missing[client_of_group]

    is_held_out = np.empty(len(order), dtype=bool)
    is_held_out[order] = np.arange(len(order)) - starts[group_of] < taken[group_of]
    return is_held_out


def _subset(index: ClientIndex, is_kept: np.ndarray) -> ClientIndex:
    """Return the index with only the kept entries."""
    kept_before = np.concatenate([[0], np.cumsum(is_kept)])
    return ClientIndex(kept_before[index.offsets], index.indices[is_kept], index.redraws)


def _write_record(record: Path, content: dict[str, Any]) -> dict[str, Any] | None:
    """Create the record exclusively, or return an earlier record of the same model; of two processes one succeeds."""
    own = record.with_suffix(f".{os.getpid()}")
    try:
        write_whole(own, json.dumps(content).encode())
        os.link(own, record)  # atomic: fails if the record exists, else the record is complete
    except FileExistsError:
        earlier = _read_record(record)
        if all(earlier.get(key) == content[key] for key in ("model", "digest")):
            return earlier
        opened = earlier.get("opened")
        when = f"at {opened}" if opened else "the record is incomplete or damaged"
        raise RunDirectoryError(
            f"{record}: the test split of this run was opened before ({when}), and a run may open it once; start a new "
            "run in a new directory"
        ) from None
    except OSError as error:
        raise RunDirectoryError(
            f"{record}: the opening of the test split cannot be recorded ({error}), so it stays closed; free space or "
            "allow writing there, and continue with --resume"
        ) from None
    finally:
        own.unlink(missing_ok=True)
    return None


def _read_record(record: Path) -> dict[str, Any]:
    """Return the content of a record; empty if it is unreadable or was changed."""
    try:
        return parse_checked(record.read_bytes())
    except (OSError, ValueError):
        return {}
