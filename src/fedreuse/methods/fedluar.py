"""FedLUAR (Kim, Kang, Lee, 2025): in every round some layers are not sent, and the server repeats their last update.

    D_l     = mean of the clients' updates of layer l         l not in R_t       U_l <- D_l
    D_l     = U_l, the last direction of layer l              l in R_t           clients send nothing, U_l stays
    w_t+1   = w_t + server_lr * D
    s_l     = |D_l| / (|w_l| + 1e-6)                          renewed for l not in R_t
    R_t+1   = `delta_layers` layers without replacement, with probabilities p_l = (1/s_l) / sum_k (1/s_k)

A layer is a weight tensor with more than one dimension; all other tensors are always sent. The first round recycles
nothing. With `blocks`, the largest layer is split by rows, and each block of rows is a layer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.message import Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, methods
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.registry import optional_part
from fedreuse.core.tensors import Tensors, drop_rows, zeros
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import Aggregator, aggregators, fresh_contributions, judged
from fedreuse.methods.aggregators.mean import chosen_aggregator
from fedreuse.methods.averaging import update_of, updates_of
from fedreuse.methods.server_steps.server_step import ServerStep, advance, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step
from fedreuse.methods.stepping import SteppingServer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Answer, Conversation
    from fedreuse.core.method import BufferPolicy, Scope
    from fedreuse.core.population import Population
    from fedreuse.core.schema import Schema

__all__ = ["FedLuar", "Layer", "LuarClient", "LuarServer", "LuarState", "layers_of", "probabilities", "without"]


@methods.register("fedluar")
@dataclass(frozen=True)
class FedLuar(MethodConfig):
    """FedLUAR: layers that change least are not sent; the server repeats their last update.

    Args:
        delta_layers: Layers that are recycled in each round, at least 0.
        blocks: Blocks into which the rows of the largest layer are split, at least 1; 1 is the paper's method.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        aggregate: Aggregator of the round's updates; null is the weighted mean.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: fedluar, delta_layers: 2}`.
    """

    delta_layers: int = 1
    blocks: int = 1
    server_lr: float = 1.0
    aggregate: Aggregator | None = optional_part(aggregators)
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.delta_layers >= 0, "method.delta_layers must not be negative", self.delta_layers)
        require(self.blocks >= 1, "method.blocks must be at least 1", self.blocks)
        chosen_step(self.step, self.server_lr, mixes="its direction repeats layers of the last one")

    def check(self, scope: Scope) -> None:
        """Refuse to recycle all layers: from round 2 on none would ever be trained again."""
        num_layers = len(layers_of(scope.schema.weights, self.blocks))
        if self.delta_layers >= max(1, num_layers):
            raise ConfigError(
                f"method.delta_layers is {self.delta_layers}, but this network has {num_layers} layers to recycle "
                "(tensors with more than one dimension, or blocks of them), and layers that are all recycled repeat "
                f"their first update for ever; set it below {num_layers}, or raise method.blocks"
            )

    def halves(self, buffers: BufferPolicy) -> tuple[LuarServer, LuarClient]:
        """Return both halves; buffers are always sent and averaged."""
        del buffers
        return LuarServer(self), LuarClient(self.blocks)


@value
class LuarState:
    """The model, the last direction U, and the scores of the layers (None before the first round)."""

    model: Model
    last: Tensors
    scores: tuple[float, ...] | None
    step: Any = None


@dataclass(frozen=True)
class Layer:
    """A unit of recycling: a tensor, or some of its rows.

    `number` is the tensor's position in the schema; blocks are numbered from the end of the schema on. `place` is its
    slice of the flat vector.
    """

    number: int
    name: str
    rows: range
    place: slice


@dataclass(frozen=True)
class LuarServer(SteppingServer[LuarState]):
    """The server half: draws the recycled layers and averages the rest."""

    config: FedLuar

    def init(self, model: Model, population: Population) -> LuarState:
        """Return the state before the first round, with no update to repeat."""
        del population
        num_layers = len(layers_of(model.weights.schema, self.config.blocks))
        if self.config.delta_layers > num_layers:
            raise ConfigError(
                f"method.delta_layers is {self.config.delta_layers}, but this network has {num_layers} layers to "
                f"recycle (tensors with more than one dimension, or blocks of them); set it to at most {num_layers}"
            )
        return LuarState(model, zeros(model.weights.schema), None, self.step.init(model.weights))

    @property
    def step(self) -> ServerStep:
        """The server step that moves the model."""
        return chosen_step(self.config.step, self.config.server_lr)

    def round(self, state: LuarState, cohort: Cohort) -> Conversation[LuarState]:
        """Name the layers to leave out; average the others, and repeat the last direction of those."""
        recycled = self._draw(state, cohort)
        values = {"recycled": recycled} if recycled else {}
        request = Message("train", to_groups(state.model, "model"), values, answers=(self._answer(state, recycled),))
        replies = yield dict.fromkeys(cohort.clients, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # no reply arrived: the model is unchanged
        contributions = fresh_contributions(updates_of(replies, state.model), cohort)
        made = chosen_aggregator(self.config.aggregate).aggregate(contributions, cohort, state.model.schema)
        direction, scores = self._merge(state, made.direction.weights, recycled)
        whole = replace(made.direction, weights=direction)
        model, step, num_kept = advance(self.step, state.model, whole, state.step, made.statistics)
        counts = {"kept variances": num_kept, "recycled layers": len(recycled)}
        return LuarState(model, direction, scores, step), Events(judged(events, made.verdicts), counts)

    def _answer(self, state: LuarState, recycled: Collection[int]) -> Answer:
        """Return the expected reply: an update without the recycled layers."""
        whole = update_of(state.model)
        layers = [layer for layer in layers_of(state.last.schema, self.config.blocks) if layer.number in recycled]
        return replace(whole, groups={**whole.groups, "update": without(state.model.weights, layers).schema})

    def _draw(self, state: LuarState, cohort: Cohort) -> tuple[int, ...]:
        """Draw R_t, the numbers of the recycled layers."""
        if state.scores is None or not self.config.delta_layers:  # round 1: there is no direction to repeat
            return ()
        numbers = [layer.number for layer in layers_of(state.last.schema, self.config.blocks)]
        rng = cohort.rng("recycled layers")
        drawn = rng.choice(numbers, self.config.delta_layers, replace=False, p=probabilities(state.scores))
        return tuple(sorted(drawn.tolist()))

    def _merge(self, state: LuarState, mean: Tensors, recycled: Collection[int]) -> tuple[Tensors, tuple[float, ...]]:
        """Return D and the scores: new ones for the layers that were sent, the last ones for recycled layers."""
        layers = layers_of(mean.schema, self.config.blocks)
        # `mean` is zero at recycled layers, because no client sent them; the last direction takes their place.
        direction, scores = mean.values.copy(), []
        for layer, score in zip(layers, state.scores or (0.0,) * len(layers), strict=True):
            if layer.number in recycled:
                direction[layer.place] = state.last.values[layer.place]
                scores.append(score)
            else:
                scores.append(_length(mean, layer) / (_length(state.model.weights, layer) + 1e-6))
        return Tensors(mean.schema, direction), tuple(scores)


@dataclass(frozen=True)
class LuarClient(ClientHalf[None]):
    """The client half: trains all layers, sends those that are not recycled, and keeps no state."""

    has_state: ClassVar[bool] = False

    blocks: int

    def init(self) -> None:
        """Return None: the client keeps no state."""

    def answer(self, request: Message, state: None, trainer: LocalTrainer) -> tuple[Message, None]:
        """Train; leave out the layers that the request names."""
        received = from_groups(request.groups, "model", trainer.schema)
        update = difference(trainer.train(received).model, received)
        recycled: tuple[int, ...] = request.values.get("recycled", ())  # type: ignore[assignment]  # set by the server
        layers = layers_of(trainer.schema.weights, self.blocks)
        sent = without(update.weights, [layer for layer in layers if layer.number in recycled])
        return Message("update", {**to_groups(update, "update"), "update": sent}), state

    def settle(self, state: None, delivered: Message) -> None:
        """Return None: the client keeps no state."""


def layers_of(schema: Schema, blocks: int) -> tuple[Layer, ...]:
    """Return all units of recycling, in schema order; the largest tensor (the first of equals) in blocks of rows."""
    kernels = [spec for spec in schema if len(spec.shape) > 1]
    largest = max(kernels, key=lambda spec: spec.size, default=None)
    layers = []
    for spec in kernels:
        position, num_rows = schema.positions[spec.name], spec.shape[0]
        parts = min(blocks, num_rows) if spec is largest else 1
        for part in range(parts):
            rows = range(num_rows * part // parts, num_rows * (part + 1) // parts)
            start, width = schema.offsets[position], spec.size // num_rows
            place = slice(start + rows.start * width, start + rows.stop * width)
            layers.append(Layer(position if parts == 1 else len(schema) + part, spec.name, rows, place))
    return tuple(layers)


def without(weights: Tensors, layers: Sequence[Layer]) -> Tensors:
    """Return the weights without the rows of these layers; a tensor without any row left is absent."""
    rows: dict[str, set[int]] = {}
    for layer in layers:
        rows.setdefault(layer.name, set()).update(layer.rows)
    return drop_rows(weights, rows) if rows else weights


def probabilities(scores: Sequence[float]) -> np.ndarray:
    """Return p_l = (1/s_l) / sum_k (1/s_k); the small term keeps the chance of an unchanged layer finite."""
    inverse = 1 / (np.array(scores) + 1e-12)
    chances: np.ndarray = inverse / inverse.sum()
    return chances


def _length(tensors: Tensors, layer: Layer) -> float:
    return float(np.sqrt(np.sum(np.square(tensors.values[layer.place], dtype=np.float64))))
