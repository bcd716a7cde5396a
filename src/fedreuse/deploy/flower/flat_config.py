"""Conversion between configurations and Flower's flat keys: `rounds.count = 10`; values other than scalars as YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fedreuse.config.run_config import RunConfig, load, read_overrides
from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import parse, to_plain
from fedreuse.deploy.flower.options import Deployment

__all__ = ["Flat", "from_flat", "to_flat"]

Flat = dict[str, bool | int | float | str]
_OPTIONS = "deploy"


def to_flat(config: RunConfig, options: Deployment) -> Flat:
    """Return every key of the run, and those of the deployment below `deploy`."""
    return _flatten({**config.to_plain(), _OPTIONS: to_plain(options)})


def from_flat(flat: Mapping[str, Any]) -> tuple[RunConfig, Deployment]:
    """Return configuration and deployment of flat keys; invalid keys raise ConfigError, as in a file."""
    plain = read_overrides([f"{key}={_text(value)}" for key, value in flat.items()])
    options: Deployment = parse(Deployment, plain.pop(_OPTIONS, {}), _OPTIONS)
    return load(plain), options


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Flat:
    flat: Flat = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, bool | int | float) else _as_yaml(value)
    return flat


def _as_yaml(value: Any) -> str:
    """Return one line that `read_overrides` parses to the value; JSON is valid YAML."""
    if isinstance(value, str) and _read(value) == value:
        return value
    return json.dumps(value)


def _read(text: str) -> Any:
    try:
        return read_overrides([f"key={text}"])["key"]
    except ConfigError:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
