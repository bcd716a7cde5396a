"""A model or an update of one: weights, float buffers and integer counters, each in its own flat vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.schema import ModelSchema
from fedreuse.core.tensors import Tensors, add, sub, to_dense, weighted_sum, zeros
from fedreuse.core.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Model", "apply", "combine", "difference", "from_groups", "to_groups"]

BUFFER_GROUPS = ("buffers", "counters")


@value
class Model:
    """Named tensors by role. An update has the same form: trained minus received, which the server adds.

    Args:
        weights: The trained tensors.
        buffers: Running statistics: floating point, not trained.
        counters: Integer tensors, such as BatchNorm's number of batches.

    Example:
        >>> import numpy as np
        >>> from fedreuse import Model, Schema, Tensors, TensorSpec
        >>> none = Tensors(Schema(), np.zeros(0, np.float32))
        >>> model = Model(Tensors(Schema((TensorSpec("w", (2,)),)), np.float32([1, 2])), none, none)
        >>> model.schema.dense_bytes
        8
    """

    weights: Tensors
    buffers: Tensors
    counters: Tensors

    @property
    def schema(self) -> ModelSchema:
        """The schema of the tensors."""
        return ModelSchema(self.weights.schema, self.buffers.schema, self.counters.schema)


def to_groups(model: Model, main: str) -> dict[str, Tensors]:
    """Return the model as message groups; `main` names the group of the weights ("model" down, "update" up)."""
    parts = {main: model.weights, "buffers": model.buffers, "counters": model.counters}
    return {name: tensors for name, tensors in parts.items() if tensors.schema.specs}


def from_groups(groups: Mapping[str, Tensors], main: str, like: ModelSchema) -> Model:
    """Return the model (dense) or the update that message groups hold; absent groups are zero."""
    return Model(
        to_dense(groups[main]) if main == "model" else groups[main],
        groups["buffers"] if "buffers" in groups else zeros(like.buffers),
        groups["counters"] if "counters" in groups else zeros(like.counters),
    )


def difference(trained: Model, received: Model) -> Model:
    """Return trained minus received."""
    return Model(
        sub(trained.weights, received.weights),
        sub(trained.buffers, received.buffers),
        sub(trained.counters, received.counters),
    )


def combine(terms: Sequence[tuple[float, Model]], like: ModelSchema) -> Model:
    """Return the weighted sum of updates, role by role."""
    return Model(
        weighted_sum([(weight, update.weights) for weight, update in terms], like.weights),
        weighted_sum([(weight, update.buffers) for weight, update in terms], like.buffers),
        weighted_sum([(weight, update.counters) for weight, update in terms], like.counters),
    )


def apply(model: Model, direction: Model) -> tuple[Model, int]:
    """Add a direction to a model; also return the number of variances that kept their previous value.

    A variance keeps its previous value where the sum would be zero, negative or NaN: a network with it would fail.
    """
    buffers, num_kept = _keep_positive(model.buffers, add(model.buffers, direction.buffers))
    weights = add(model.weights, direction.weights)
    return Model(weights, buffers, add(model.counters, direction.counters)), num_kept


def _keep_positive(before: Tensors, after: Tensors) -> tuple[Tensors, int]:
    values = to_dense(after).values
    held, num_kept = None, 0
    for spec, start in zip(after.schema, after.schema.offsets, strict=False):
        if not spec.is_positive:
            continue
        part = slice(start, start + spec.size)
        bad = ~(values[part] > 0)  # the negation also selects NaN
        if bad.any():
            held = values.copy() if held is None else held
            held[part] = np.where(bad, before.values[part], held[part])
            num_kept += int(bad.sum())
    return (after if held is None else Tensors(after.schema, held)), num_kept
