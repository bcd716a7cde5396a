"""Identity of a run: digests, sizes and origin, written before its first round and compared on resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.accounting.dense import dense_reference
from fedreuse.core.checked import with_check
from fedreuse.core.formats import RUN_DIRECTORY
from fedreuse.core.model import Model
from fedreuse.core.tensors import from_arrays
from fedreuse.learning.data import digest_of
from fedreuse.runs.claim import check_facts
from fedreuse.store.directory import RunDirectory, reference_to_plain
from fedreuse.store.manifest import digests_of
from fedreuse.store.provenance import provenance
from fedreuse.store.study_file import registered_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import nn

    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.schedule import Schedule
    from fedreuse.runs.federation import Federation

__all__ = ["digest_by_names", "digest_of_arrays", "digest_of_model", "facts_of", "write_facts"]


def write_facts(federation: Federation, schedule: Schedule, directory: RunDirectory) -> None:
    """Write the facts of a new run; refuse to resume with others."""
    prepared = federation.prepared
    for name, index in (("partition", prepared.training), ("validation", prepared.validation)):
        if not (directory.path / f"{name}.npz").exists():
            index.save(directory.path / f"{name}.npz")
    facts = facts_of(federation, schedule)
    if (directory.path / "provenance.json").exists() or directory.has_rounds:
        check_facts(directory.provenance, facts, directory)
    else:
        plan = registered_digest(directory.path.absolute().parent, federation.config.run_id)
        known = {
            "format": RUN_DIRECTORY.version,
            **provenance(),
            **facts,
            **({} if plan is None else {"plan": plan}),
            "files": digests_of(directory.path),
        }
        directory.write_json("provenance.json", with_check(known))


def facts_of(federation: Federation, schedule: Schedule) -> dict[str, Any]:
    """Return run id, sizes, and digests of data, partition, schedule and initial model."""
    prepared = federation.prepared
    return {
        "run_id": federation.config.run_id,
        "reference": reference_to_plain(dense_reference(federation.schema)),
        **({} if federation.recipe == federation.config.recipe else {"resolved": federation.recipe.to_plain()}),
        "digests": {
            "data": prepared.digest,
            "partition": prepared.training.digest,
            "validation": prepared.validation.digest,
            "schedule": schedule.digest,
            **({"device_trace": federation.fleet.digest} if federation.fleet is not None else {}),
            "schema": federation.schema.digest,
            **({"frozen": federation.schema.frozen} if federation.schema.frozen else {}),
            "initial_model": digest_of_model(federation.initial),
        },
        "partition_redraws": prepared.training.redraws,
        **({} if federation.config.local.together == 1 else {"together": federation.group_size[0]}),
        "parameters": federation.schema.weights.size,
        "input_shape": list(prepared.data.shape),
        "num_classes": prepared.data.num_classes,
    }


def digest_of_model(model: Model) -> str:
    """Return the SHA-256 digest of all tensors of a model."""
    return digest_of(model.weights.values, model.buffers.values, model.counters.values)


def digest_of_arrays(arrays: Mapping[str, np.ndarray], module: nn.Module) -> str:
    """Return the digest of a model given as arrays by name; empty if they are not the tensors of the network."""
    from fedreuse.learning.flat_network import schema_of

    return digest_by_names(arrays, schema_of(module))


def digest_by_names(arrays: Mapping[str, np.ndarray], schema: ModelSchema) -> str:
    """Return the digest of a model given as arrays by name; empty if they are not the tensors of the schema."""
    try:
        parts = (schema.weights, schema.buffers, schema.counters)
        return digest_of_model(Model(*(from_arrays(part, arrays) for part in parts)))
    except (KeyError, ValueError):
        return ""
