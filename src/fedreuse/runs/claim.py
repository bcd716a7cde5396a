"""Whose run directory this is: a new run takes it, a resumed one must be the same experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from fedreuse.core.errors import RunDirectoryError
from fedreuse.runs.config import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.runs.config import RunConfig
    from fedreuse.runs.directory import RunDirectory

__all__ = ["check_facts", "check_free", "check_same", "claim"]


def claim(directory: RunDirectory, config: RunConfig, resume: bool) -> RunDirectory:
    """Take a directory for a run: a new one, or one whose run of the same configuration did not end."""
    check_free(directory, config, resume)
    if not (resume and (directory.path / "config.yaml").exists()):
        directory.write_text("config.yaml", yaml.safe_dump(config.to_plain(), sort_keys=False))
    return directory


def check_free(directory: RunDirectory, config: RunConfig, resume: bool) -> None:
    """Refuse a directory that holds another run, or one that would be written over."""
    has_config = (directory.path / "config.yaml").exists()
    if has_config and directory.is_complete:
        raise RunDirectoryError(
            f"{directory.path} holds a complete run; see it with `fedreuse show {directory.path}`, "
            "or choose another --out"
        )
    has_begun = has_config and (directory.path / "checkpoint.sqlite").exists()  # not if its data was missing
    if has_begun and not resume:
        raise RunDirectoryError(
            f"{directory.path} holds an unfinished run; go on with --resume, or choose another --out"
        )
    if has_config and resume:
        check_same(config, directory)


def check_same(config: RunConfig, directory: RunDirectory) -> None:
    """Refuse a directory whose run has another configuration, naming what differs."""
    stored = load(directory.config)
    if stored.run_id != config.run_id:
        mine, theirs = _leaves(config.to_plain()), _leaves(stored.to_plain())
        differing = [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]
        shown = ", ".join(f"{key} is {mine.get(key)!r} here and {theirs.get(key)!r} there" for key in differing[:3])
        raise RunDirectoryError(
            f"{directory.path} belongs to another configuration: {shown}; choose another --out, or the configuration "
            f"in {directory.path / 'config.yaml'}"
        )


def check_facts(known: Mapping[str, Any], facts: Mapping[str, Any], directory: RunDirectory) -> None:
    """Refuse to go on with other data, partition, schedule or initial model than the run began with."""
    for name, digest in facts["digests"].items():
        if known["digests"].get(name) != digest:
            raise RunDirectoryError(
                f"{directory.path}: the {name.replace('_', ' ')} is not what this run began with "
                f"({str(known['digests'].get(name))[:12]} then, {digest[:12]} now), so going on would mix two "
                "experiments; restore it, or start a new run"
            )


def _leaves(plain: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(plain, dict):
        return {prefix: plain}
    leaves: dict[str, Any] = {}
    for key, value in plain.items():
        leaves |= _leaves(value, f"{prefix}.{key}" if prefix else key)
    return leaves
