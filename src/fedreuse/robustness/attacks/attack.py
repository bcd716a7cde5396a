"""Base class of attacks: the attacking clients, and the changes that they make to data, replies and counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.model import BUFFER_GROUPS
from fedreuse.core.numbers import pack_numbers, unpack_numbers
from fedreuse.core.randomness import stream
from fedreuse.core.registry import Registry
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.core.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf

__all__ = ["Attack", "BadMemory", "attacks", "tensors_of", "with_updates"]


@value
class BadMemory:
    """State of an attacking client: the honest half's state, and its own notes.

    `is_idle`: the honest half did not run this time, so it has nothing to settle.
    """

    honest: Any
    notes: Any = None
    is_idle: bool = False


@dataclass(frozen=True)
class Attack:
    """Base class of attacks, with four methods to override; everything else stays honest.

    An attack is a frozen dataclass that derives from this class and overrides `poison` (training data), `answer` (one
    client's reply), `collude` (all attackers together, given the honest updates) or `claim` (the number of examples).

    Args:
        bad: Share of all clients that attack, in [0, 1), rounded to whole clients, which are drawn with the run's seed.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse.robustness.attacks.attack import Attack
        >>> @dataclass(frozen=True)
        ... class Boast(Attack):
        ...     def claim(self, examples):
        ...         return 10 * examples
        >>> len(Boast(bad=0.3).clients(10, seed=101))
        3
    """

    bad: float = 0.2

    def __post_init__(self) -> None:
        """Check the range."""
        require(0 <= self.bad < 1, "attack.bad must be in [0, 1)", self.bad)

    @property
    def poisons(self) -> bool:
        """True if the attack changes training data."""
        return False

    @property
    def colludes(self) -> bool:
        """True if attackers answer together, given the honest updates."""
        return False

    def clients(self, num_clients: int, seed: int) -> frozenset[int]:
        """Return the ids of the attacking clients."""
        drawn = stream(seed, "bad clients").permutation(num_clients)
        return frozenset(int(client) for client in drawn[: round(self.bad * num_clients)])

    def poison(
        self, inputs: np.ndarray, labels: np.ndarray, num_classes: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return an attacker's training examples; the given arrays may be changed in place."""
        del num_classes, rng
        return inputs, labels

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return an attacker's reply and state; `half` is the honest client half.

        An attack that keeps its own state returns a `BadMemory`.
        """
        return half.answer(request, state, trainer)

    def collude(self, honest: Sequence[np.ndarray], num_bad: int) -> np.ndarray:
        """Return the update that every attacker of this round sends, in double precision, given the honest ones."""
        raise NotImplementedError(f"{type(self).__name__} must define collude(honest, num_bad)")

    def claim(self, examples: int) -> int:
        """Return the number of training examples that an attacker reports."""
        return examples

    def goal(self, inputs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return inputs and the classes that the attacker wants for them; None for untargeted attacks."""
        del inputs, labels
        return None


attacks: Registry[Attack] = Registry("attacks", "fedreuse.robustness.attacks", base=Attack)


def with_updates(reply: Message, change: Callable[[Tensors], Tensors]) -> Message:
    """Return a reply in which every group except running statistics and counters is changed, and so are its numbers."""
    groups = {group: tensors if group in BUFFER_GROUPS else change(tensors) for group, tensors in reply.groups.items()}
    values = {
        name: pack_numbers(to_dense(change(tensors_of(value))).values) if isinstance(value, bytes) else value
        for name, value in reply.values.items()
    }
    return replace(reply, groups=groups, values=values)


def tensors_of(numbers: bytes) -> Tensors:
    """Return the numbers of a reply as one tensor."""
    values = unpack_numbers(numbers)
    return Tensors(Schema((TensorSpec("numbers", values.shape),)), values)
