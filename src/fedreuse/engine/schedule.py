"""Schedules of cohorts: drawn once per seed, frozen to a file, the same for every method."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.bounded import MAX_LIST_BYTES, read_arrays, read_json
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError, RunDirectoryError, require
from fedreuse.core.files import write_whole
from fedreuse.core.randomness import stream
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["AlwaysAvailable", "Availability", "Probability", "Schedule", "Trace", "availabilities", "load_or_freeze"]

WHERE = "rounds.availability"


class Availability(ABC):
    """A rule for the clients that can be reached in each round."""

    @abstractmethod
    def presence(self, num_clients: int, seed: int) -> Callable[[int], np.ndarray | None]:
        """Return a function from the round number to the ids of the present clients, ascending (None: all clients)."""


availabilities: Registry[Availability] = Registry("availabilities", "fedreuse.engine.schedule", base=Availability)


@availabilities.register("always")
@dataclass(frozen=True)
class AlwaysAvailable(Availability):
    """Full availability: every client can be reached in every round.

    Example: `rounds: {availability: always}`.
    """

    def presence(self, num_clients: int, seed: int) -> Callable[[int], np.ndarray | None]:  # noqa: ARG002 - no client is absent
        """Return a function that gives None: all clients are present."""
        return lambda round_number: None  # noqa: ARG005 - the same in every round


@availabilities.register("probability")
@dataclass(frozen=True)
class Probability(Availability):
    """Random availability: each client has its own probability of being reachable, drawn anew in every round.

    Give one of `p`, `file`, or `low` and `high`.

    Args:
        p: The same for all clients, in [0, 1].
        file: One probability per client: a JSON list, alone or under the key `probabilities`, or an npz file
            with that array.
        low: Lower end of the uniform distribution that each client's probability is drawn from, once per run.
        high: Upper end of that distribution, in [low, 1].

    Example: `rounds: {availability: {name: probability, low: 0.2, high: 0.9}}`.
    """

    p: float | None = None
    file: str | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Check that there is one source of probabilities, all in [0, 1]."""
        is_range = self.low is not None and self.high is not None
        is_half_range = (self.low is None) != (self.high is None)
        num_sources = (self.p is not None) + (self.file is not None) + is_range
        given = {key: value for key, value in vars(self).items() if value is not None}
        require(
            num_sources == 1 and not is_half_range,
            "probability needs exactly one of: p; file; low and high together",
            given,
        )
        for key, value in given.items():
            if key != "file":
                require(0 <= value <= 1, f"probability.{key} must be between 0 and 1", value)
        if self.low is not None and self.high is not None:
            require(self.low <= self.high, "probability.low must not be above probability.high", given)

    def probabilities(self, num_clients: int, seed: int) -> np.ndarray:
        """Return the probability of each client."""
        if self.file is not None:
            return _read_probabilities(Path(self.file).expanduser(), num_clients)
        if self.low is not None and self.high is not None:
            return stream(seed, "availability").uniform(self.low, self.high, num_clients)
        return np.full(num_clients, self.p, dtype=np.float64)

    def presence(self, num_clients: int, seed: int) -> Callable[[int], np.ndarray | None]:
        """Return a function that draws the present clients of a round: those whose draw is below their probability."""
        probabilities = self.probabilities(num_clients, seed)

        def present(round_number: int) -> np.ndarray:
            return np.flatnonzero(stream(seed, "availability", round_number).random(num_clients) < probabilities)

        return present


@availabilities.register("trace")
@dataclass(frozen=True)
class Trace(Availability):
    """Availability from a JSON file, {"rounds": [[0, 3], [1, 2], ...]}, which starts again at its end.

    Args:
        file: The path of the file.

    Example: `rounds: {availability: {name: trace, file: trace.json}}`.
    """

    file: str

    def presence(self, num_clients: int, seed: int) -> Callable[[int], np.ndarray | None]:  # noqa: ARG002 - nothing is drawn
        """Return a function that looks up the clients that the file lists for the round."""
        rounds = _read_trace(Path(self.file).expanduser(), num_clients)
        return lambda round_number: rounds[(round_number - 1) % len(rounds)]


@dataclass(frozen=True)
class Schedule:
    """The cohorts of all rounds; `cohorts[0]` belongs to round 1."""

    cohorts: tuple[tuple[int, ...], ...]
    seed: int
    num_clients: int

    def __post_init__(self) -> None:
        """Check that each cohort is ascending and within the population."""
        for round_number, clients in enumerate(self.cohorts, start=1):
            is_ascending = all(first < second for first, second in pairwise(clients))
            if not is_ascending or (clients and not 0 <= clients[0] <= clients[-1] < self.num_clients):
                raise ValueError(f"round {round_number}: not an ascending selection of {self.num_clients} clients")

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.cohorts)

    def __iter__(self) -> Iterator[Cohort]:
        """Iterate over the cohorts in the order of rounds."""
        return (self.cohort(round_number) for round_number in range(1, len(self) + 1))

    @classmethod
    def draw(
        cls,
        num_clients: int,
        count: int,
        cohort_size: int,
        availability: Availability,
        seed: int,
        secret: bytes | None = None,
    ) -> Schedule:
        """Draw each cohort uniformly without replacement from the present clients; all of them if they are too few.

        With a secret, the cohorts cannot be computed from the seed alone, which the run's files contain.
        """
        require(num_clients >= 1, "task.clients must be at least 1", num_clients)
        require(count >= 1, "rounds.count must be at least 1", count)
        require(cohort_size >= 1, "rounds.cohort must be at least 1", cohort_size)
        if cohort_size > num_clients:
            raise ConfigError(
                f"rounds.cohort is {cohort_size}, but task.clients is {num_clients}; "
                f"set rounds.cohort to at most {num_clients}, or raise task.clients"
            )
        present = availability.presence(num_clients, seed)
        rounds = range(1, count + 1)
        entropy = seed if secret is None else int.from_bytes(sha256(b"cohorts" + secret).digest())
        return cls(tuple(_select(num_clients, cohort_size, present(t), entropy, t) for t in rounds), seed, num_clients)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the cohorts, the seed and the number of clients."""
        content = {"cohorts": self.cohorts, "num_clients": self.num_clients, "seed": self.seed}
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def cohort(self, round_number: int, look_ahead: int = 0) -> Cohort:
        """Return the cohort of a round, with up to `look_ahead` next cohorts."""
        if not 1 <= round_number <= len(self):
            raise ValueError(f"round {round_number} is not in a schedule of rounds 1 to {len(self)}")
        ahead = self.cohorts[round_number : round_number + look_ahead]
        return Cohort(round_number, self.cohorts[round_number - 1], self.seed, ahead)

    def save(self, path: Path) -> None:
        """Write the schedule as JSON, atomically."""
        content = {
            "digest": self.digest,
            "seed": self.seed,
            "num_clients": self.num_clients,
            "cohorts": self.cohorts,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content).encode())

    @classmethod
    def load(cls, path: Path) -> Schedule:
        """Read the file that `save` wrote and verify its digest."""
        try:
            content = read_json(path, MAX_LIST_BYTES)
            cohorts = tuple(tuple(clients) for clients in content["cohorts"])
            schedule = cls(cohorts, content["seed"], content["num_clients"])
            written = content["digest"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunDirectoryError(
                f"{path}: not a schedule ({type(error).__name__}: {error}); "
                "restore the file, or start a new run directory"
            ) from None
        if written != schedule.digest:
            raise RunDirectoryError(
                f"{path}: changed since it was written (its digest is {schedule.digest}, the recorded one {written}); "
                "restore the file, or start a new run directory"
            )
        return schedule


def load_or_freeze(  # noqa: PLR0913, PLR0917 - a path, and the arguments of `Schedule.draw`
    path: Path,
    num_clients: int,
    count: int,
    cohort_size: int,
    availability: Availability,
    seed: int,
    secret: bytes | None = None,
) -> Schedule:
    """Draw the schedule and write it the first time; later read it, and refuse a different one.

    The stored file wins over a new draw, because NumPy does not promise the same draws in every version.
    """
    drawn = Schedule.draw(num_clients, count, cohort_size, availability, seed, secret)
    if not path.exists():
        drawn.save(path)
        return drawn
    frozen = Schedule.load(path)
    if frozen.digest != drawn.digest:
        raise RunDirectoryError(
            f"{path}: frozen for another configuration: {_difference(frozen, drawn)}; go back to "
            "that configuration, or use a new directory (another NumPy version may draw differently, too)"
        )
    return frozen


def _select(
    num_clients: int, cohort_size: int, present: np.ndarray | None, seed: int, round_number: int
) -> tuple[int, ...]:
    """Draw one round from its own random stream, in ascending order."""
    rng = stream(seed, "schedule", round_number)
    num_present = num_clients if present is None else len(present)
    if not num_present:
        return ()  # an empty round is kept, so that round numbers stay comparable between methods
    chosen = rng.choice(num_present, min(cohort_size, num_present), replace=False, shuffle=False)
    ids = np.sort(chosen if present is None else present[chosen])
    return tuple(ids.tolist())


def _difference(frozen: Schedule, drawn: Schedule) -> str:
    """Describe the first difference between two schedules."""
    for name, there, here in (
        ("task.clients", frozen.num_clients, drawn.num_clients),
        ("seed", frozen.seed, drawn.seed),
        ("rounds.count", len(frozen), len(drawn)),
    ):
        if there != here:
            return f"{name} is {here} here and {there} there"
    pairs = zip(frozen.cohorts, drawn.cohorts, strict=True)
    round_number = next(t for t, (there, here) in enumerate(pairs, start=1) if there != here)
    return f"round {round_number} has other clients (rounds.cohort or rounds.availability differ)"


def _read_json(path: Path) -> Any:
    """Read the JSON file that the availability names."""
    try:
        return read_json(path, MAX_LIST_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{WHERE}.file: {path} cannot be read as JSON ({error}); fix the path or the file") from None


def _read_probabilities(path: Path, num_clients: int) -> np.ndarray:
    """Read one probability per client, from JSON or npz."""
    try:
        if path.suffix == ".npz":
            content = read_arrays(path, ["probabilities"])["probabilities"]
        else:
            content = _read_json(path)
            content = content["probabilities"] if isinstance(content, dict) else content
        probabilities = np.asarray(content, dtype=np.float64)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{WHERE}.file: {path} holds no probabilities ({error}); "
            "give a JSON list of numbers, or an npz with the array probabilities"
        ) from None
    if probabilities.shape != (num_clients,):
        raise ConfigError(
            f"{WHERE}.file: {path} holds probabilities of shape {probabilities.shape}, "
            f"but task.clients is {num_clients}; give one per client"
        )
    wrong = np.flatnonzero(~((probabilities >= 0) & (probabilities <= 1)))
    if len(wrong):
        raise ConfigError(
            f"{WHERE}.file: {path} gives client {wrong[0]} the probability {probabilities[wrong[0]]}; "
            "it must be between 0 and 1"
        )
    return probabilities


def _read_trace(path: Path, num_clients: int) -> list[np.ndarray]:
    """Read the ids present in each round of a trace, ascending."""
    content = _read_json(path)
    rounds = content.get("rounds") if isinstance(content, dict) else None
    if not isinstance(rounds, list) or not rounds:
        raise ConfigError(f'{WHERE}.file: {path} lists no rounds; it must read {{"rounds": [[0, 3], [1, 2]]}}')
    for number, ids in enumerate(rounds, start=1):
        where = f"{WHERE}.file: {path}, round {number}"
        if not isinstance(ids, list):
            raise ConfigError(f"{where}: a list of client ids expected, got {ids!r}")
        wrong = [client for client in ids if type(client) is not int or not 0 <= client < num_clients]
        if wrong:
            raise ConfigError(
                f"{where}: {wrong[0]!r} is not a client id; with task.clients {num_clients}, "
                f"ids are 0 to {num_clients - 1}"
            )
        if len(set(ids)) != len(ids):
            raise ConfigError(f"{where}: a client is listed twice; list it once")
    return [np.sort(np.array(ids, dtype=np.int64)) for ids in rounds]
