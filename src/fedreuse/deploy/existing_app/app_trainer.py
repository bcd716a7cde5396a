"""A local trainer that is a Flower app's own train function; its network and loss, if handed over, for gradients."""

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
    """What an app hands over: its train function; for some methods its network, and the loss of batch after batch.

    `loss(network, context)` yields the loss of each batch of this client's training examples.
    """

    train: Callable[[Message, Context], Message]
    network: Callable[[], Any] | None = None
    loss: Callable[[Any, Context], Iterable[Any]] | None = None

    def check(self, name: str, needs: Needs) -> None:
        """Refuse a method that this app gives too little for, by its name."""
        if needs.gradients and (self.network is None or self.loss is None):
            raise ConfigError(
                f"method {name} looks at gradients, but the train function hands over no network and loss; write "
                "@fedreuse_train(network=Net, loss=losses), or choose a method that needs only the trained model, "
                "such as fedavg, fed_ef, clag, or dg_fedreuse with gate: age_only and mu: 0"
            )
        if needs.corrections and self.network is None:
            raise ConfigError(
                f"method {name} corrects every local step, but the train function hands over no network; write "
                "@fedreuse_train(network=Net), or choose a method that needs only the trained model, such as fedavg, "
                "fed_ef, clag, or dg_fedreuse with gate: age_only and mu: 0"
            )


class AppTrainer:
    """One client of an app in one exchange."""

    def __init__(
        self, own: OwnTraining, agreement: Agreement, message: Message, context: Context, where: tuple[int, int]
    ) -> None:
        """`where` is the client and the round; `message` is what Flower delivered, with our record taken out."""
        self._own, self._agreement, self._message, self._context = own, agreement, message, context
        self.client, self._round = where
        self._records = dict(message.content)
        self.schema = agreement.layout.schema
        if own.network is not None and agreement.recipe.method.needs.gradients:
            from fedreuse.learning.networks.head import declared_head  # torch, only where the app brings it

            self.schema = self.schema.with_head(declared_head(own.network()))
        self.work = Work()
        self.said: dict[str, ConfigRecord | MetricRecord] = {}
        """What the train function returned beside its arrays."""

    @property
    def initial(self) -> Model:
        """Not told: only personal models start from it, and those are refused."""
        raise RunError("an existing app's clients are not told the initial model")

    def rng(self, purpose: str) -> np.random.Generator:
        """The stream of a purpose for this client and round."""
        return stream(self._agreement.seed, purpose, self._round, self.client)

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """The app's own function, from this model; a correction enters its optimizer's steps."""
        del purpose
        if steps is not None:
            raise RunError("an existing app decides itself how many steps it takes")
        began, agreement = perf_counter(), self._agreement
        self._message.content = RecordDict({agreement.arrays_key: agreement.layout.record(start), **self._records})
        with self._watched(start, correction) as seen:
            reply = self._own.train(self._message, self._context)
        arrays, examples = self._read(reply)
        if correction is not None and examples and not seen.count:
            raise RunError(
                f"method {agreement.recipe.name} corrects every local step, but the train function took no step of a "
                "torch optimizer"
            )
        self.work += Work(seen.count, examples, 0, 0, 0, perf_counter() - began)
        return Trained(agreement.layout.model(arrays), seen.count, examples, seen.lr, seen.momentum)

    def gradient(self, at: Model, names: Collection[str], plan: BatchPlan, purpose: str) -> Tensors:
        """Of the app's own loss, over batches of its own."""
        from fedreuse.learning.user_loop import gradient  # torch, only where the app brings it

        del purpose
        assert self._own.network is not None
        assert self._own.loss is not None
        began, loss = perf_counter(), self._own.loss
        arrays = {
            name: array for part in (at.weights, at.buffers, at.counters) for name, array in to_arrays(part).items()
        }
        found, num_batches = gradient(
            self._own.network(), lambda network: loss(network, self._context), arrays, names, plan
        )
        self.work += Work(0, 0, num_batches, 0, 0, perf_counter() - began)
        return from_arrays(self.schema.weights.subset(names), found)

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """Never asked: Flower's own evaluation is."""
        del model, split
        raise RunError("an existing app is evaluated by Flower's own messages")

    def _watched(self, start: Model, correction: Correction | None) -> Any:
        if self._own.network is None:
            return nullcontext(_Unseen())
        from fedreuse.learning.user_loop import corrected  # torch, only where the app brings it

        return corrected(self._own.network(), start, correction)

    def _read(self, reply: Message) -> tuple[dict[str, np.ndarray], int]:
        """The arrays and the number of examples of the app's reply; the rest goes to the server as it is."""
        if reply.has_error():
            raise RunError(f"the train function replied with an error: {reply.error.reason}")
        held = [record for record in reply.content.values() if isinstance(record, ArrayRecord)]
        if len(held) != 1:
            raise RunError(f"the train function returned {len(held)} array records; one is expected, the trained model")
        self.said = {name: record for name, record in reply.content.items() if not isinstance(record, ArrayRecord)}
        key = self._agreement.examples_key
        told = [record[key] for record in self.said.values() if isinstance(record, MetricRecord) and key in record]
        if len(told) != 1 or isinstance(told[0], list) or not 0 <= told[0] < 1 << 53:
            raise RunError(f"the train function must return the number of examples as one metric {key!r}, got {told}")
        return arrays_of(held[0]), int(told[0])


@dataclass
class _Unseen:
    """Steps of a loop that nobody watches."""

    count: int = 0
    lr: float = 0.0
    momentum: float = 0.0
