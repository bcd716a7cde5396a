"""Local trainer that calls a Flower app's train function; gradients need the app's network and loss."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.local_trainer import SplitName, Trained, Work
from fedreuse.core.metrics import Metrics
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import from_arrays, to_arrays
from fedreuse.deploy.existing_app.array_layout import arrays_of

if TYPE_CHECKING:
    import numpy as np
    from flwr.app import Context, Message

    from fedreuse.core.corrections import Correction
    from fedreuse.core.local_trainer import BatchPlan
    from fedreuse.core.model import Model
    from fedreuse.core.needs import Needs
    from fedreuse.core.tensors import Tensors
    from fedreuse.deploy.existing_app.agreement import Agreement

__all__ = ["AppTrainer", "OwnTraining"]


@dataclass(frozen=True)
class OwnTraining:
    """Training of an existing app.

    Args:
        train: The app's train function.
        network: Makes the torch network that `train` trains; for methods that correct local steps.
        loss: `loss(network, context)` yields the loss of each of the client's batches; for methods with gradients.
    """

    train: Callable[[Message, Context], Message]
    network: Callable[[], Any] | None = None
    loss: Callable[[Any, Context], Iterable[Any]] | None = None

    def check(self, name: str, needs: Needs) -> None:
        """Raise ConfigError for a method that needs more than this app gives."""
        if needs.losses:
            raise ConfigError(
                f"method {name} needs losses at given models, which a train function does not compute; choose a method "
                "that needs only the trained model, or deploy it as an app of fedreuse: fedreuse deploy CONFIG"
            )
        if needs.gradients and (self.network is None or self.loss is None):
            raise ConfigError(
                f"method {name} needs gradients, but the train function is decorated without network and loss; write "
                "@fedreuse_train(network=Net, loss=losses), or choose a method that needs only the trained model, "
                "such as fedavg, fed_ef, clag, or dg_fedreuse with gate: age_only and mu: 0"
            )
        if needs.corrections and self.network is None:
            raise ConfigError(
                f"method {name} corrects every local step, but the train function is decorated without network; write "
                "@fedreuse_train(network=Net), or choose a method that needs only the trained model, such as fedavg, "
                "fed_ef, clag, or dg_fedreuse with gate: age_only and mu: 0"
            )


class AppTrainer:
    """Trainer of one client of an app in one exchange."""

    def __init__(
        self, own: OwnTraining, agreement: Agreement, message: Message, context: Context, where: tuple[int, int]
    ) -> None:
        """Take the message as Flower delivered it, without the fedreuse record; `where` is client and round."""
        self._own, self._agreement, self._message, self._context = own, agreement, message, context
        self.client, self._round = where
        self._records = dict(message.content)
        self.schema = agreement.layout.schema
        if own.network is not None and agreement.recipe.method.needs.gradients:
            from fedreuse.learning.networks.head import declared_head  # torch, only where the app brings it

            self.schema = self.schema.with_head(declared_head(own.network()))
        self.work = Work()
        self.returned: dict[str, ConfigRecord | MetricRecord] = {}
        """Records that the train function returned beside its arrays."""

    @property
    def initial(self) -> Model:
        """Not available: only personal models start from it, and the strategy refuses those."""
        raise RunError("the clients of an existing app do not know the initial model")

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose for this client and round."""
        return stream(self._agreement.seed, purpose, self._round, self.client)

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """Train with the app's function from this model; a correction is applied at each step of its optimizer."""
        del purpose
        if steps is not None:
            raise RunError("an existing app decides its number of steps itself")
        began, agreement = perf_counter(), self._agreement
        self._message.content = RecordDict({agreement.arrays_key: agreement.layout.record(start), **self._records})
        with self._observed(start, correction) as steps_taken:
            reply = self._own.train(self._message, self._context)
        arrays, examples = self._read(reply)
        if correction is not None and examples and not steps_taken.count:
            raise RunError(
                f"method {agreement.recipe.name} corrects every local step, but the train function took no step of a "
                "torch optimizer"
            )
        self.work += Work(steps_taken.count, examples, 0, 0, 0, perf_counter() - began)
        model = agreement.layout.model(arrays)
        return Trained(model, steps_taken.count, examples, steps_taken.lr, steps_taken.momentum)

    def gradient(self, at: Model, names: Collection[str], plan: BatchPlan, purpose: str) -> Tensors:
        """Return the gradient of the app's loss over its own batches."""
        from fedreuse.learning.user_loop import gradient  # torch, only where the app brings it

        del purpose
        assert self._own.network is not None
        assert self._own.loss is not None
        began, loss = perf_counter(), self._own.loss
        arrays = {
            name: array for part in (at.weights, at.buffers, at.counters) for name, array in to_arrays(part).items()
        }
        gradients, num_batches = gradient(
            self._own.network(), lambda network: loss(network, self._context), arrays, names, plan
        )
        self.work += Work(0, 0, num_batches, 0, 0, perf_counter() - began)
        return from_arrays(self.schema.weights.subset(names), gradients)

    def loss(self, at: Model, purpose: str) -> float:
        """Raise RunError: the app's train function computes no losses of given batches."""
        del at, purpose
        raise RunError(f"method {self._agreement.recipe.name} computes losses of given batches, which no app offers")

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """Raise RunError: Flower's own messages evaluate an existing app."""
        del model, split
        raise RunError("an existing app is evaluated by Flower's own messages")

    def _observed(self, start: Model, correction: Correction | None) -> Any:
        if self._own.network is None:
            return nullcontext(_UnknownSteps())
        from fedreuse.learning.user_loop import corrected  # torch, only where the app brings it

        return corrected(self._own.network(), start, correction)

    def _read(self, reply: Message) -> tuple[dict[str, np.ndarray], int]:
        """Return arrays and number of examples of the app's reply; other records go to the server unchanged."""
        if reply.has_error():
            raise RunError(f"the train function replied with an error: {reply.error.reason}")
        models = [record for record in reply.content.values() if isinstance(record, ArrayRecord)]
        if len(models) != 1:
            raise RunError(f"the train function returned {len(models)} array records; it must return one, the model")
        self.returned = {name: record for name, record in reply.content.items() if not isinstance(record, ArrayRecord)}
        key = self._agreement.examples_key
        metrics = [record for record in self.returned.values() if isinstance(record, MetricRecord)]
        counts = [record[key] for record in metrics if key in record]
        if len(counts) != 1 or isinstance(counts[0], list) or not 0 <= counts[0] < 1 << 53:
            raise RunError(f"the train function must return the number of examples as one metric {key!r}, got {counts}")
        return arrays_of(models[0]), int(counts[0])


@dataclass
class _UnknownSteps:
    """Steps of a training loop that cannot be observed."""

    count: int = 0
    lr: float = 0.0
    momentum: float = 0.0
