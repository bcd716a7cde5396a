"""Rounds that send a few coordinates both ways: directions are drawn from a seed, and clients replay missed steps.

w_k+1 = w_k + sum_n c_k,n d_k,n            d_k,n: directions of step k, drawn at both ends; c_k: its coordinates
down    c_j .. c_k-1                       of the steps missed since the client held w_j; w_0 is built at both ends
up      the client's numbers of step k     their weighted mean becomes c_k

The model itself is sent to a client whose missed coordinates would be longer. Running statistics are sent dense.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import RunError
from fedreuse.core.int_map import IntMap
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, ServerHalf
from fedreuse.core.model import BUFFER_GROUPS, Model, apply, from_groups, to_groups
from fedreuse.core.numbers import Numbers, pack_numbers, unpack_numbers
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.core.values import value
from fedreuse.methods.averaging import average
from fedreuse.methods.directions import check_basis

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation, Replies, Value
    from fedreuse.core.population import Population
    from fedreuse.core.schema import Schema

__all__ = ["Held", "Replay", "ReplayClient", "ReplayServer", "ReplayState", "mean_numbers", "moved_buffers"]

COORDINATES = "coordinates"


class Replay(ABC):
    """How a method measures numbers at a client, and how their mean moves the model; both ends hold the same one.

    Attributes:
        basis: Seed of all directions.
    """

    basis: int

    @abstractmethod
    def count(self, schema: Schema) -> int:
        """Return the number of coordinates of a step."""

    @abstractmethod
    def measure(self, received: Model, step: int, trainer: LocalTrainer) -> tuple[np.ndarray, Model]:
        """Return a client's numbers of a step, and its model, of which only buffers and counters are used."""

    @abstractmethod
    def coordinates(self, mean: np.ndarray) -> np.ndarray:
        """Return the coordinates of a step, from the weighted mean of the clients' numbers."""

    @abstractmethod
    def move(self, weights: Tensors, step: int, coordinates: np.ndarray) -> Tensors:
        """Return the weights after a step."""


@value
class ReplayState:
    """The model, its number of steps, their coordinates, and the step of the model that each client holds."""

    model: Model
    steps: int = 0
    path: IntMap[np.ndarray] = field(default_factory=IntMap, metadata={"by": "round"})
    held: IntMap[int] = field(default_factory=IntMap)


@dataclass(frozen=True)
class ReplayServer(ServerHalf[ReplayState]):
    """The server half: sends missed coordinates, averages numbers, and moves the model."""

    replay: Replay

    def init(self, model: Model, population: Population) -> ReplayState:
        """Return the state before the first round."""
        del population
        return ReplayState(model)

    def model(self, state: ReplayState) -> Model:
        """Return the model."""
        return state.model

    def forget(self, state: ReplayState, client: int) -> ReplayState:
        """Return the state in which a client holds the initial model only."""
        return ReplayState(state.model, state.steps, state.path, state.held.without([client]))

    def round(self, state: ReplayState, cohort: Cohort) -> Conversation[ReplayState]:
        """Ask the cohort for numbers, and move the model by their mean."""
        starts = {client: state.held.get(client, 0) for client in cohort.clients}
        requests = {start: self._request(state, start) for start in set(starts.values())}
        replies = yield {client: requests[start] for client, start in starts.items()}
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)
        mean = mean_numbers(replies, cohort, COORDINATES)
        coordinates = unpack_numbers(pack_numbers(self.replay.coordinates(mean)))  # as clients will receive them
        model, num_kept = moved_buffers(state.model, replies, cohort)
        weights = self.replay.move(state.model.weights, state.steps, coordinates)
        after = ReplayState(
            Model(weights, model.buffers, model.counters),
            state.steps + 1,
            self._shortened(state.path.with_({state.steps: coordinates}), state.model),
            state.held.with_(dict.fromkeys(replies, state.steps)),
        )
        return after, Events(events, {"kept variances": num_kept})

    def _request(self, state: ReplayState, start: int) -> Message:
        groups = to_groups(state.model, "model")
        missed = [state.path.get(step) for step in range(start, state.steps)]
        if all(part is not None for part in missed) and not _is_longer(missed, state.model):
            del groups["model"]
        else:
            missed = []
        joined = np.concatenate(missed) if missed else np.empty(0, np.float32)  # type: ignore[arg-type]  # none is None
        values: dict[str, Value] = {"basis": self.replay.basis, "step": state.steps, COORDINATES: pack_numbers(joined)}
        numbers = Numbers(self.replay.count(state.model.weights.schema))
        parts = {group: tensors.schema for group, tensors in groups.items() if group in BUFFER_GROUPS}
        return Message("train", groups, values, answers=(Answer("update", parts, {COORDINATES: numbers}),))

    def _shortened(self, path: IntMap[np.ndarray], model: Model) -> IntMap[np.ndarray]:
        """Return the path without its first steps, which are never sent because the model is shorter."""
        while _is_longer(list(path.values()), model):
            path = path.without([next(iter(path))])
        return path


def _is_longer(path: list[np.ndarray] | list[np.ndarray | None], model: Model) -> bool:
    return sum(part.nbytes for part in path if part is not None) > model.weights.schema.dense_bytes


@value
class Held:
    """The weights that a client holds, and the number of steps behind them."""

    weights: Tensors
    step: int


@dataclass(frozen=True)
class ReplayClient(ClientHalf[Held | None]):
    """The client half: replays missed steps, measures its numbers, and holds the model it started from."""

    replay: Replay

    def init(self) -> None:
        """Return None: the client builds the initial model itself."""

    def answer(self, request: Message, state: Held | None, trainer: LocalTrainer) -> tuple[Message, Held]:
        """Replay, measure, and reply with the numbers."""
        check_basis(request.values["basis"], self.replay.basis)
        received = self._received(request, state, trainer)
        numbers, trained = self.replay.measure(received, _step(request), trainer)
        buffers = {
            group: Tensors(after.schema, after.values - before.values)
            for group, after, before in (
                ("buffers", trained.buffers, received.buffers), ("counters", trained.counters, received.counters)
            )
            if after.schema.specs
        }  # fmt: skip
        reply = Message("update", buffers, {COORDINATES: pack_numbers(numbers)})
        return reply, Held(received.weights, _step(request))

    def _received(self, request: Message, state: Held | None, trainer: LocalTrainer) -> Model:
        """Return the model of the request's step.

        Raises:
            RunError: If the client holds another step than the server believes.
        """
        if "model" in request.groups:
            return from_groups(request.groups, "model", trainer.schema)
        held = Held(trainer.initial.weights, 0) if state is None else state
        missed = unpack_numbers(request.values[COORDINATES])
        count = self.replay.count(trainer.schema.weights)
        if held.step * count + len(missed) != _step(request) * count:
            raise RunError(
                f"the client holds step {held.step} and receives {len(missed)} coordinates, {count} a step, for step "
                f"{_step(request)}; method settings must be the same at both ends"
            )
        weights = held.weights
        for number, coordinates in enumerate(missed.reshape(-1, count)):
            weights = self.replay.move(weights, held.step + number, coordinates)
        return from_groups({**request.groups, "model": weights}, "model", trainer.schema)


def _step(request: Message) -> int:
    return int(request.values["step"])  # type: ignore[arg-type]  # the server half wrote it


def mean_numbers(replies: Replies, cohort: Cohort, name: str) -> np.ndarray:
    """Return the mean of a value of numbers, weighted by the clients' examples, in double precision."""
    weights = cohort.population.ratio_weights(sorted(replies))
    return sum(  # type: ignore[return-value]  # there is at least one reply
        weight * unpack_numbers(replies[client].values[name]).astype(np.float64) for client, weight in weights.items()
    )


def moved_buffers(model: Model, replies: Replies, cohort: Cohort) -> tuple[Model, int]:
    """Return the model with its buffers and counters moved by the clients' mean, and the number of kept variances."""
    still = zeros(model.weights.schema)
    updates = {
        client: from_groups({**replies[client].groups, "update": still}, "update", model.schema)
        for client in sorted(replies)
    }
    return apply(model, average(updates, cohort, "ratio", model))
