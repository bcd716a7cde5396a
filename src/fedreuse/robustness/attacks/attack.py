"""What an attack is: which clients are bad, and what they change on the way from their data to the server's door."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.model import BUFFER_GROUPS
from fedreuse.core.randomness import stream
from fedreuse.core.registry import Registry
from fedreuse.core.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Message
    from fedreuse.core.method import ClientHalf
    from fedreuse.core.tensors import Tensors

__all__ = ["Attack", "BadMemory", "attacks", "with_updates"]


@value
class BadMemory:
    """What a bad client remembers: the honest half's state, and notes of its own.

    `is_idle`: the honest half was not asked this time, so it has nothing to settle.
    """

    honest: Any
    notes: Any = None
    is_idle: bool = False


@dataclass(frozen=True)
class Attack:
    """Bad clients, and four places at which they may lie; whatever an attack does not say is honest.

    One's own is a frozen dataclass that derives from this and overrides one place: `poison` (training data), `answer`
    (what one client replies), `collude` (all bad clients together, with sight of the honest updates) or `claim` (the
    number of examples).

    Args:
        bad: Share of all clients that are bad, in [0, 1); which ones is drawn with the run's seed, rounded to whole
            clients.

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
        """Whether it changes training data."""
        return False

    @property
    def colludes(self) -> bool:
        """Whether bad clients answer together, with sight of the honest updates."""
        return False

    def clients(self, num_clients: int, seed: int) -> frozenset[int]:
        """Who is bad."""
        drawn = stream(seed, "bad clients").permutation(num_clients)
        return frozenset(int(client) for client in drawn[: round(self.bad * num_clients)])

    def poison(
        self, inputs: np.ndarray, labels: np.ndarray, num_classes: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """A bad client's training examples as it uses them; the arrays are its own to change."""
        del num_classes, rng
        return inputs, labels

    def answer(self, half: ClientHalf[Any], request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """What a bad client replies; `half` is what it would do if it were honest.

        A state of its own is a `BadMemory`.
        """
        return half.answer(request, state, trainer)

    def collude(self, honest: Sequence[np.ndarray], num_bad: int) -> np.ndarray:
        """The update that every bad client of this round sends, in double precision, given the honest ones."""
        raise NotImplementedError(f"{type(self).__name__} must define collude(honest, num_bad)")

    def claim(self, examples: int) -> int:
        """How many training examples a bad client says it has."""
        return examples

    def goal(self, inputs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Inputs, and the classes that the attacker wants for them; None if it only wants to spoil the model."""
        del inputs, labels
        return None


attacks: Registry[Attack] = Registry("attacks", "fedreuse.robustness.attacks", base=Attack)


def with_updates(reply: Message, change: Callable[[Tensors], Tensors]) -> Message:
    """A reply with every group changed but running statistics and counters."""
    groups = {group: tensors if group in BUFFER_GROUPS else change(tensors) for group, tensors in reply.groups.items()}
    return replace(reply, groups=groups)
