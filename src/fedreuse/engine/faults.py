"""Simulated faults: lost and late replies, a function of seed, round and client, so that all executors agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.randomness import stream
from fedreuse.core.registry import Registry, parse

__all__ = ["Fate", "FaultPlan", "Listed", "ListedFault", "NoFaults", "RandomFaults", "faults"]

Fate = Literal["answers", "late", "lost"]


class FaultPlan(ABC):
    """A plan that assigns a fate to each request.

    `answers`: the reply arrives. `late`: the client trains and its reply is sent (and counted), but arrives after the
    round's deadline, so the server does not absorb it. `lost`: no reply is sent.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse.engine.faults import FaultPlan
        >>> @dataclass(frozen=True)
        ... class EveryThirdRound(FaultPlan):
        ...     def fate(self, seed, round_number, exchange_in_round, client):
        ...         return "lost" if round_number % 3 == 0 else "answers"
        >>> EveryThirdRound().fate(101, 6, 1, client=0)
        'lost'
    """

    @abstractmethod
    def fate(self, seed: int, round_number: int, exchange_in_round: int, client: int) -> Fate:
        """Return the fate of one request, always the same for the same arguments.

        Args:
            seed: Seed of the run.
            round_number: Round, from 1.
            exchange_in_round: Exchange within the round, from 1.
            client: Client id.
        """


faults: Registry[FaultPlan] = Registry("faults", "fedreuse.engine.faults", base=FaultPlan)


@faults.register("none")
@dataclass(frozen=True)
class NoFaults(FaultPlan):
    """No faults: every client answers.

    Example: `faults: none`.
    """

    def fate(self, seed: int, round_number: int, exchange_in_round: int, client: int) -> Fate:  # noqa: ARG002 - nothing fails
        """Return `answers`."""
        return "answers"


@faults.register("random")
@dataclass(frozen=True)
class RandomFaults(FaultPlan):
    """Random faults: each request is lost or late with fixed probabilities, independently of all others.

    Args:
        lost: Probability that the client neither computes nor replies, in [0, 1].
        late: Probability that the reply arrives too late to count, in [0, 1]; `lost + late` is at most 1.

    Example: `faults: {name: random, lost: 0.1}`.
    """

    lost: float = 0.0
    late: float = 0.0

    def __post_init__(self) -> None:
        """Check that both are probabilities, with a sum of at most 1."""
        require(0 <= self.lost <= 1, "random.lost must be between 0 and 1", self.lost)
        require(0 <= self.late <= 1, "random.late must be between 0 and 1", self.late)
        total = self.lost + self.late
        require(total <= 1, "random.lost and random.late must not add up to more than 1", total)

    def fate(self, seed: int, round_number: int, exchange_in_round: int, client: int) -> Fate:
        """Draw once: lost below `lost`, late below `lost + late`."""
        # One stream per request: the fate of a client does not depend on which other clients were selected.
        drawn = stream(seed, f"faults {exchange_in_round}", round_number, client).random()
        if drawn < self.lost:
            return "lost"
        return "late" if drawn < self.lost + self.late else "answers"


@dataclass(frozen=True)
class ListedFault:
    """The fate of one client in one exchange of one round."""

    round: int
    client: int
    fate: Fate
    exchange: int = 1

    def __post_init__(self) -> None:
        """Check the ranges: rounds and exchanges count from 1, clients from 0."""
        require(self.round >= 1, "round must be at least 1", self.round)
        require(self.client >= 0, "client must be at least 0", self.client)
        require(self.exchange >= 1, "exchange must be at least 1", self.exchange)
        require(self.fate in ("answers", "late", "lost"), "fate must be answers, late or lost", self.fate)


def _parse_entries(value: object, where: str) -> tuple[ListedFault, ...]:
    """Parse a list of mappings, each strictly."""
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where}: a list of {{round, client, fate}} expected, got {value!r}")
    entries: list[ListedFault] = [_parse_entry(entry, f"{where}[{index}]") for index, entry in enumerate(value)]
    return tuple(entries)


def _parse_entry(value: object, where: str) -> Any:
    return value if isinstance(value, ListedFault) else parse(ListedFault, value, where)


@faults.register("listed")
@dataclass(frozen=True)
class Listed(FaultPlan):
    """Listed faults: each is written down; all other requests are answered.

    Args:
        entries: Each has `round`, `client`, `fate` (`answers`, `late` or `lost`) and optionally `exchange` (default 1).

    Example: `faults: {name: listed, entries: [{round: 2, client: 0, fate: lost}]}`.
    """

    entries: tuple[ListedFault, ...] = field(metadata={"parse": _parse_entries})

    def __post_init__(self) -> None:
        """Check that no request has two entries."""
        if len(self._by_request) != len(self.entries):
            keys = [(entry.round, entry.exchange, entry.client) for entry in self.entries]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ConfigError(
                "listed.entries: round {}, exchange {}, client {} is listed twice; keep one".format(*twice)
            )

    def fate(self, seed: int, round_number: int, exchange_in_round: int, client: int) -> Fate:  # noqa: ARG002 - nothing is drawn
        """Return the listed fate, or `answers`."""
        return self._by_request.get((round_number, exchange_in_round, client), "answers")

    @cached_property
    def _by_request(self) -> dict[tuple[int, int, int], Fate]:
        return {(entry.round, entry.exchange, entry.client): entry.fate for entry in self.entries}
