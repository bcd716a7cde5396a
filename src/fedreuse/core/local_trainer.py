"""What a client has where it stands: data, network, streams, and a meter that counts its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np

    from fedreuse.core.corrections import Correction
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema
    from fedreuse.core.tensors import Tensors

__all__ = ["BatchPlan", "LocalTrainer", "SplitName", "Trained", "Work"]

SplitName = Literal["validation", "test"]
"""Which examples of its own a client evaluates on."""


@dataclass(frozen=True)
class Work:
    """What a client computed: local steps, examples and gradients of training and of proxies, FLOPs, seconds."""

    training_steps: int = 0
    training_examples: int = 0
    proxy_gradients: int = 0
    proxy_examples: int = 0
    flops: int = 0
    seconds: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Sum of both."""
        return Work(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model and how it came about: what normalisers of control variates need."""

    model: Model
    steps: int
    examples: int
    lr: float
    momentum: float


@dataclass(frozen=True)
class BatchPlan:
    """The batches a gradient is taken over, in one shuffled pass.

    None stands for all batches, and for the batch size of training. Deterministic means the same batches in every
    round, evaluation mode and no augmentation.
    """

    num_batches: int | None = None
    batch_size: int | None = None
    is_deterministic: bool = False
    is_mean: bool = False


class LocalTrainer(Protocol):
    """The client's side of learning, for one client in one round.

    Example:
        >>> from fedreuse.testing.quadratic import QuadraticFederation
        >>> trainer = QuadraticFederation.draw().trainer(client=0, round_number=1)
        >>> trained = trainer.train(trainer.initial)
        >>> trained.steps > 0, trainer.work.training_steps == trained.steps
        (True, True)
    """

    schema: ModelSchema
    client: int

    @property
    def initial(self) -> Model:
        """The model before the first round: every end makes it from the seed."""
        ...

    @property
    def work(self) -> Work:
        """What was computed here so far."""
        ...

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """Local training from a model: the configured epochs, or a number of steps."""
        ...

    def gradient(
        self,
        at: Model,
        names: Collection[str],
        plan: BatchPlan,
        purpose: str,
    ) -> Tensors:
        """Sum, or mean, over batches of the mean loss gradient with respect to the named weights; buffers stay."""
        ...

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """The model on this client's own examples of a split; the test split opens when a run ends."""
        ...

    def rng(self, purpose: str) -> np.random.Generator:
        """The stream of a purpose for this client and round."""
        ...
