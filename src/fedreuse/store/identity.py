"""Id of a run: a hash of all keys of its configuration that decide the result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from fedreuse.core.population import MOST_HELD

__all__ = ["run_id_of"]

_NOT_IDENTITY = ("executor", "server_store", "checkpoint_every", "listeners", "test", "keep", "development_seeds")
_IDENTITY_IF_SET = ("attack", "devices", "max_norm", "max_examples", "bounds")
_ROUNDS_IF_SET = ("deadline", "wait_for")
_LATER_KEYS = (("buffer", None), ("by_line", False))


def run_id_of(plain: Mapping[str, Any]) -> str:
    """Return the id of a resolved configuration, as stored in `config.yaml`.

    Runs with the same id end in bit-identical results.
    """
    decisive = {
        key: part
        for key, part in plain.items()
        if key not in _NOT_IDENTITY and not (key in _IDENTITY_IF_SET and part is None)
    }
    if isinstance(plain.get("rounds"), Mapping):
        rounds = plain["rounds"].items()
        decisive["rounds"] = {key: part for key, part in rounds if not (key in _ROUNDS_IF_SET and part is None)}
    if isinstance(plain.get("local"), Mapping):
        # one by one is what runs stored before the key existed did
        decisive["local"] = {key: part for key, part in plain["local"].items() if (key, part) != ("together", 1)}
    method = _first_names(decisive["method"])
    is_small = isinstance(plain.get("task"), Mapping) and plain["task"].get("clients", MOST_HELD + 1) <= MOST_HELD
    if is_small and isinstance(method, Mapping) and method.get("server_memory") == "auto":
        method = {**method, "server_memory": "per_client"}  # which it is, and was before there was a choice
    decisive["method"] = method
    model = plain.get("keep", {}).get("model", "last")
    if model != "last":
        decisive["keep"] = {"model": model}
    return sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]


def _first_names(method: Any) -> Any:
    """Return a method's tree with the keys of stored runs: `weights` for `weighting`, and no later keys at default."""
    if not isinstance(method, Mapping):
        return method
    return {
        "weights" if key == "weighting" else key: _first_names(inner)
        for key, inner in method.items()
        if (key, inner) not in _LATER_KEYS
    }
