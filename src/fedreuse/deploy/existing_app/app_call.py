"""Client half of a compressed app: any of its functions, called with the model that this node holds.

A function of a training message gets a model and returns one, of which the update is sent. Functions of other messages
usually return metrics only; if they return the arrays unchanged, nothing is sent for them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, MessageType, RecordDict

from fedreuse.core.errors import RunError
from fedreuse.core.message import Message
from fedreuse.core.method import ClientHalf
from fedreuse.core.model import from_groups
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import from_arrays, pick, sub
from fedreuse.deploy.existing_app.array_layout import arrays_of

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.app import Message as FlowerMessage

    from fedreuse.core.model import Model
    from fedreuse.core.tensors import Tensors
    from fedreuse.deploy.existing_app.agreement import Agreement

__all__ = ["ANSWER", "ASK", "SAME", "AppCall", "AppClient", "AppError"]

_log = logging.getLogger("flwr")
ASK, ANSWER = "ask", "answer"
"""Kinds of requests and replies."""
SAME = "same"
"""Value of a reply whose function returned the received arrays."""
Function = Callable[["FlowerMessage", "Context"], "FlowerMessage"]


class AppError(Exception):
    """A function that replied with an error, which goes to the server as it is."""

    def __init__(self, reply: FlowerMessage) -> None:
        """Keep the reply."""
        super().__init__("the app replied with an error")
        self.reply = reply


@dataclass(frozen=True)
class AppClient(ClientHalf[None]):
    """Client half that calls the app; its `trainer` is an `AppCall`."""

    def init(self) -> None:
        """Return None: the client keeps no state."""

    def answer(self, request: Message, state: None, trainer: Any) -> tuple[Message, None]:
        """Call the app's function with the received model."""
        groups, values = trainer.call(from_groups(request.groups, "model", trainer.schema))
        return Message(ANSWER, groups, values=values), state


class AppCall:
    """Call of an app's function for one message.

    Args:
        function: The rest of the client app, as a mod gets it.
        message: The message as Flower delivered it.
        context: Flower's context.
        agreement: Settings that server and client share.
        where: Client and round, of the random streams.
        name: Name of the record that holds the model.
        records: The other records of the message.
        before: Call of another function with the same model, made first.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of one call
        self,
        function: Function,
        message: FlowerMessage,
        context: Context,
        agreement: Agreement,
        where: tuple[int, int],
        name: str,
        records: Mapping[str, Any],
        before: AppCall | None = None,
    ) -> None:
        """Prepare the call."""
        self.before = before
        self._function, self._message, self._context = function, message, context
        self._agreement, self._records, self._name = agreement, records, name
        self.client, self._round = where
        self.schema = agreement.layout.schema
        self.returned: dict[str, Any] = {}
        """Records that the function returned, without the arrays of the model."""
        self.name = ""
        """Name of the returned record that holds the model; empty if there is none."""
        self.order: list[str] = []
        """Names of the returned model's arrays in order, if there are more than the server knows."""
        self.values: dict[str, Any] = {}
        """Values of the reply."""

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose for this client and round."""
        return stream(self._agreement.seed, purpose, self._round, self.client)

    def call(self, received: Model) -> tuple[dict[str, Tensors], dict[str, Any]]:
        """Call the function, and return the groups and values of the reply."""
        if self.before is not None:
            self.before.call(received)
        groups, self.values = self._called(received)
        return groups, self.values

    def _called(self, received: Model) -> tuple[dict[str, Tensors], dict[str, Any]]:
        given = self._agreement.layout.record(received)
        self._message.content = RecordDict({self._name: given, **self._records})
        reply = self._function(self._message, self._context)
        if reply.has_error():
            raise AppError(reply)
        self.returned = dict(reply.content.items())
        record = self._model()
        if record is None:
            return {}, {}
        arrays = arrays_of(record)
        if not _is_training(self._message):
            return self._of_other_message(arrays, arrays_of(given))
        return self._update(self._taken(arrays), received), {}

    def _model(self) -> ArrayRecord | None:
        """Return the model among the returned records: that of the same name, or the one with arrays of the model."""
        known = {name for name, _, _ in self._agreement.layout.arrays}
        records = {name: record for name, record in self.returned.items() if isinstance(record, ArrayRecord)}
        fitting = [name for name, record in records.items() if known & record.keys()]
        if len(fitting) > 1 and self._name not in fitting:
            raise RunError(
                f"the app returned the arrays of the model in {len(fitting)} records ({', '.join(fitting)}); return "
                f"them in one, or name one of them {self._name!r}"
            )
        self.name = self._name if self._name in fitting else next(iter(fitting), "")
        return records[self.name] if self.name else None

    def _of_other_message(
        self, arrays: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, Tensors], dict[str, Any]]:
        if arrays.keys() == given.keys() and all(np.array_equal(arrays[name], given[name]) for name in given):
            del self.returned[self.name]
            return {}, {SAME: True}
        kind = self._message.metadata.message_type
        _log.warning("the %s function returned changed arrays, which are sent uncompressed", kind)
        self.name = ""
        return {}, {}

    def _taken(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays of the model, and leave only the others in the returned record."""
        layout = self._agreement.layout
        for name, shape, kind in layout.arrays:
            array = arrays.get(name)
            if array is not None and (array.shape != shape or not np.can_cast(array.dtype, kind, "same_kind")):
                raise RunError(
                    f"the app returned {name} as {array.dtype} {array.shape}, but was given {kind} {shape}; return it "
                    "with the same shape and dtype, or under another name"
                )
        known = {name for name, _, _ in layout.arrays}
        more = {name: array for name, array in self.returned[self.name].items() if name not in known}
        if more:
            self.returned[self.name], self.order = ArrayRecord(more), list(arrays)
        else:
            del self.returned[self.name]
        return layout.cast({name: array for name, array in arrays.items() if name in known})

    def _update(self, arrays: Mapping[str, np.ndarray], received: Model) -> dict[str, Tensors]:
        groups = {}
        for group, part in (
            ("update", received.weights),
            ("buffers", received.buffers),
            ("counters", received.counters),
        ):
            names = [spec.name for spec in part.schema if spec.name in arrays]
            if names:
                groups[group] = sub(from_arrays(part.schema.subset(names), arrays), pick(part, names))
        return groups


def _is_training(message: FlowerMessage) -> bool:
    return bool(message.metadata.message_type.partition(".")[0] == MessageType.TRAIN)
