"""Methods under attack: both halves, wrapped by the attack.

Attackers run the honest client half and change its reply before it is packed. Colluders need the honest updates of the
same round, so their replies are replaced at the server, after decoding; they know `max_norm` and stay below it. Where
replies arrive one by one, they start from the last updates of the honest clients that answered last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.method import ClientHalf, ServerHalf
from fedreuse.core.numbers import pack_numbers
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.core.values import value
from fedreuse.robustness.attacks.attack import BadMemory, tensors_of

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation, Message, Replies
    from fedreuse.core.method import Method
    from fedreuse.core.model import Model
    from fedreuse.core.population import Population
    from fedreuse.robustness.attacks.attack import Attack

__all__ = ["HostileClient", "HostileServer", "under_attack"]

_GROUP = "update"
_KNOWN = 20
"""Honest clients whose last updates colluders know where replies arrive one by one."""


@value
class Colluding:
    """State of an asynchronous server half under attack: its own, and the last honest updates, the oldest first."""

    honest: Any
    known: Mapping[int, Tensors]


def _inner(state: Any) -> Any:
    return state.honest if isinstance(state, Colluding) else state


def under_attack(method: Method, attack: Attack, bad: frozenset[int]) -> Method:
    """Return the method with an attack by these clients."""
    if not bad:
        return method
    server = HostileServer(method.server, attack, bad, method.max_norm) if attack.colludes else method.server
    return replace(method, server=server, client=HostileClient(method.client, attack, bad))


@dataclass(frozen=True)
class HostileClient(ClientHalf[Any]):
    """The client half of every client: honest, or the attack's."""

    honest: ClientHalf[Any]
    attack: Attack
    bad: frozenset[int]

    @property
    def wants_delivered(self) -> bool:
        """True if the honest half needs the delivered tensors."""
        return self.honest.wants_delivered

    def init(self) -> Any:
        """Delegate to the honest half."""
        return self.honest.init()

    def answer(self, request: Message, state: Any, trainer: LocalTrainer) -> tuple[Message, Any]:
        """Return the honest reply, or the attacker's."""
        if trainer.client not in self.bad:
            return self.honest.answer(request, state, trainer)
        return self.attack.answer(self.honest, request, state, trainer)

    def settle(self, state: Any, delivered: Message) -> Any:
        """Delegate to the honest half."""
        if isinstance(state, BadMemory):  # an idle honest half has no pending state to settle
            return state if state.is_idle else replace(state, honest=self.honest.settle(state.honest, delivered))
        return self.honest.settle(state, delivered)

    def own_model(self, state: Any, received: Model, trainer: LocalTrainer) -> Model:
        """Delegate to the honest half."""
        honest = state.honest if isinstance(state, BadMemory) else state
        return self.honest.own_model(honest, received, trainer)


@dataclass(frozen=True)
class HostileServer(ServerHalf[Any]):
    """The honest server half, with replies of colluding clients replaced before it sees them."""

    honest: ServerHalf[Any]
    attack: Attack
    bad: frozenset[int]
    max_norm: float | None = None

    @property
    def is_asynchronous(self) -> bool:
        """True if the honest half gets replies one by one."""
        return self.honest.is_asynchronous

    def init(self, model: Model, population: Population) -> Any:
        """Return the state of the honest half, with no known updates if it is asynchronous."""
        state = self.honest.init(model, population)
        return Colluding(state, {}) if self.is_asynchronous else state

    def model(self, state: Any) -> Model:
        """Delegate to the honest half."""
        return self.honest.model(_inner(state))

    def broadcast(self, state: Any) -> Model:
        """Delegate to the honest half."""
        return self.honest.broadcast(_inner(state))

    def forget(self, state: Any, client: int) -> Any:
        """Delegate to the honest half."""
        inner = self.honest.forget(_inner(state), client)
        return replace(state, honest=inner) if isinstance(state, Colluding) else inner

    def round(self, state: Any, cohort: Cohort) -> Conversation[Any]:
        """Run the honest round with replaced replies of the attackers."""
        conversation = self.honest.round(_inner(state), cohort)
        known = state.known if isinstance(state, Colluding) else {}
        requests = next(conversation)
        while True:
            replies = yield requests
            given = {client: _update_of(reply) for client, reply in replies.items()}
            updates = {client: update for client, update in given.items() if update is not None}
            honest = {client: update for client, update in updates.items() if client not in self.bad}
            if self.is_asynchronous:
                others = {client: update for client, update in known.items() if client not in honest}
                known = dict(list((others | honest).items())[-_KNOWN:])
                honest = known
            try:
                requests = conversation.send(self._exchanged(replies, [*updates], honest))
            except StopIteration as finished:
                inner, events = finished.value
                return (Colluding(inner, known) if self.is_asynchronous else inner), events

    def _exchanged(self, replies: Replies, clients: list[int], known: Mapping[int, Tensors]) -> Mapping[int, Message]:
        honest = [to_dense(update).values for update in known.values()]
        present = [client for client in clients if client in self.bad]
        if not honest or not present or len({len(row) for row in honest}) > 1:
            return replies  # no honest update to start from, or clients sent different layers
        num_bad = len(self.bad) if self.is_asynchronous else len(present)
        made = self._bounded(self.attack.collude(honest, num_bad))
        return {
            client: self._replaced(reply, made) if client in present else reply for client, reply in replies.items()
        }

    def _bounded(self, row: np.ndarray) -> np.ndarray:
        # Colluders replace replies after the port's check of max_norm, so the limit is applied here.
        norm = float(np.sqrt(np.sum(row * row)))
        return row if self.max_norm is None or norm <= self.max_norm else row * (self.max_norm / norm)

    @staticmethod
    def _replaced(reply: Message, row: np.ndarray) -> Message:
        update = _update_of(reply)
        if update is None or update.schema.size != len(row):
            return reply
        if _GROUP not in reply.groups:
            values = {
                name: pack_numbers(row) if isinstance(kept, bytes) else kept for name, kept in reply.values.items()
            }
            return replace(reply, values=values)
        schema = update.schema
        return replace(reply, groups={**reply.groups, _GROUP: Tensors(schema, row.astype(schema.dtype))})


def _update_of(reply: Message) -> Tensors | None:
    """Return the update of a reply: its group, or the numbers of a method that sends numbers only."""
    numbers = [given for given in reply.values.values() if isinstance(given, bytes)]
    if _GROUP in reply.groups or len(numbers) != 1:
        return reply.groups.get(_GROUP)
    return tensors_of(numbers[0])
