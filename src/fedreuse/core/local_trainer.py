"""The interface of local training: a client's data, network and random streams, and a count of its computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np

    from fedreuse.core.corrections import Correction
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema
    from fedreuse.core.tensors import Tensors

__all__ = [
    "NO_WORK",
    "BatchPlan",
    "LocalTrainer",
    "Paused",
    "SplitName",
    "Together",
    "Trained",
    "WaitingTrainer",
    "Work",
]

SplitName = Literal["validation", "test"]
"""A split of a client's own examples for evaluation."""


@dataclass(frozen=True, slots=True)
class Work:
    """A client's computation.

    Attributes:
        training_steps: Local optimizer steps.
        training_examples: Examples processed in these steps.
        proxy_gradients: Gradients of batches computed for scores rather than for training.
        proxy_examples: Examples processed for these gradients.
        flops: Floating-point operations.
        seconds: Wall-clock time.
    """

    training_steps: int = 0
    training_examples: int = 0
    proxy_gradients: int = 0
    proxy_examples: int = 0
    flops: int = 0
    seconds: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Return the sum of both."""
        return Work(
            self.training_steps + other.training_steps,
            self.training_examples + other.training_examples,
            self.proxy_gradients + other.proxy_gradients,
            self.proxy_examples + other.proxy_examples,
            self.flops + other.flops,
            self.seconds + other.seconds,
        )


NO_WORK = Work()
"""No computation, as of a request."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and the number of steps and hyperparameters by which control variates are normalised."""

    model: Model
    steps: int
    examples: int
    lr: float
    momentum: float


@dataclass(frozen=True)
class BatchPlan:
    """The batches over which a gradient is computed, in one shuffled pass.

    Args:
        num_batches: Number of batches; None: all of them.
        batch_size: Examples per batch; None: the batch size of training.
        is_deterministic: Use the same batches in every round, evaluation mode and no augmentation.
        is_mean: Return the mean over batches rather than the sum.
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
        """The initial model, which server and clients create from the seed."""
        ...

    @property
    def work(self) -> Work:
        """The computation so far."""
        ...

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """Train from a model for the configured epochs, or for a number of steps."""
        ...

    def gradient(
        self,
        at: Model,
        names: Collection[str],
        plan: BatchPlan,
        purpose: str,
    ) -> Tensors:
        """Return the gradient of the mean loss of each batch, summed or averaged over batches.

        Args:
            at: The model at which the gradient is computed; its buffers are not changed.
            names: The weights with respect to which the loss is differentiated.
            plan: The batches.
            purpose: Name of the random stream that shuffles the examples.
        """
        ...

    def loss(self, at: Model, purpose: str) -> float:
        """Return the mean loss of one batch, by a forward pass in evaluation mode.

        Args:
            at: The model.
            purpose: Name of the random stream that draws the batch; the same purpose draws the same batch.
        """
        ...

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """Evaluate a model on this client's examples of a split; `test` is available only after the last round."""
        ...

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose for this client and round."""
        ...


class Paused(BaseException):
    """A client whose training waits for that of others; its answer is then computed again, with the result."""


class WaitingTrainer(LocalTrainer, Protocol):
    """A trainer of a group: `train` raises `Paused` until `Together.train` has computed its result."""

    def restart(self) -> None:
        """Return the known results again, in the order of the calls."""
        ...

    def follow(self, other: WaitingTrainer) -> bool:
        """Wait for the training that `other` waits for; False if its half read anything of its own client before.

        The halves of both must have the same request and state: then they ask for the same training.
        """
        ...


class Together(Protocol):
    """Training of several clients as one computation."""

    @property
    def size(self) -> int:
        """Largest number of clients of a group."""
        ...

    def trainers(self, clients: Sequence[int], round_number: int) -> list[WaitingTrainer]:
        """Return the trainers of a group, in the order of the clients."""
        ...

    def train(self, paused: Sequence[WaitingTrainer]) -> None:
        """Compute the training that each of these trainers waits for."""
        ...
