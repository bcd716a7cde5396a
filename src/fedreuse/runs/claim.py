"""Ownership of a run directory: a new run claims it, a resumed one must be the same experiment."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError, RunDirectoryError, UserError
from fedreuse.core.files import clear_leftovers
from fedreuse.store.directory import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fedreuse.config.run_config import RunConfig
    from fedreuse.store.directory import RunDirectory

__all__ = ["check_facts", "check_free", "check_ours", "check_same", "claim", "hold"]

_SIGNS = ("LOCK", "COMPLETE", "checkpoint.sqlite", "provenance.json", "test-opened.json", "server-app.json")
"""Files that only a run writes; a config.yaml may be the user's own."""
_MADE_BEFORE = "federation"
"""Folder of a local federation, which exists before its run."""


def check_ours(place: Path) -> None:
    """Refuse a folder with the user's own files, which the files of a run might overwrite."""
    if not place.is_dir() or any((place / sign).exists() for sign in _SIGNS):
        return
    foreign = sorted(path.name for path in place.iterdir() if path.name != _MADE_BEFORE)
    if foreign:
        shown = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
        raise RunDirectoryError(
            f"{place} is not a run directory and not empty ({shown}), so nothing is written there; choose a new or "
            "empty folder as `out`"
        )


@contextmanager
def hold(directory: RunDirectory, config: RunConfig, resume: bool) -> Iterator[None]:
    """Lock and claim a directory during a run; a run refused before its first round leaves nothing behind."""
    is_new = directory.lock()
    clear_leftovers(directory.path)
    before = set(directory.path.iterdir())
    try:
        claim(directory, config, resume)
        yield
    except UserError:
        if directory.path / JOURNAL not in before and not directory.has_rounds:
            directory.release()
            for path in set(directory.path.iterdir()) - before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if is_new:
                shutil.rmtree(directory.path)
        raise
    finally:
        directory.release()


def claim(directory: RunDirectory, config: RunConfig, resume: bool) -> RunDirectory:
    """Claim a directory for a run: a new one, or one with an unfinished run of the same configuration."""
    check_free(directory, config, resume)
    if not (resume and (directory.path / "config.yaml").exists()):
        (directory.path / "provenance.json").unlink(missing_ok=True)  # of a start without a round
        directory.write_text("config.yaml", yaml.safe_dump(config.to_plain(), sort_keys=False))
    return directory


def check_free(directory: RunDirectory, config: RunConfig, resume: bool) -> None:
    """Refuse a directory that holds another run, or one that would be overwritten."""
    has_config = (directory.path / "config.yaml").exists()
    if has_config and directory.is_complete:
        raise RunDirectoryError(
            f"{directory.path} holds a complete run; show it with `fedreuse show {directory.path}`, "
            "read it with resume=True, or choose another `out`"
        )
    has_begun = has_config and (directory.path / JOURNAL).exists()  # false if the earlier start found no data
    if has_begun and not resume:
        raise RunDirectoryError(
            f"{directory.path} holds an unfinished run; continue it with resume=True, or choose another `out`"
        )
    if has_config and resume:
        check_same(config, directory)


def check_same(config: RunConfig, directory: RunDirectory) -> None:
    """Refuse a directory whose run has another configuration, and name the differing keys."""
    stored = _stored(directory)
    if stored.run_id != config.run_id:
        mine, theirs = _leaves(config.to_plain()), _leaves(stored.to_plain())
        differing = [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]
        shown = ", ".join(f"{key} is {mine.get(key)!r} here and {theirs.get(key)!r} there" for key in differing[:3])
        raise RunDirectoryError(
            f"{directory.path} belongs to another configuration: {shown}; choose another `out`, or the configuration "
            f"in {directory.path / 'config.yaml'}"
        )


def _stored(directory: RunDirectory) -> RunConfig:
    try:
        return load(directory.config)
    except ConfigError as error:
        raise RunDirectoryError(
            f"{directory.path / 'config.yaml'}: {error} (in this file); restore the file from a copy, or "
            "choose another `out`"
        ) from None


def check_facts(known: Mapping[str, Any], facts: Mapping[str, Any], directory: RunDirectory) -> None:
    """Refuse to resume with other data, partition, schedule or initial model than the run began with."""
    if known.get("run_id") != facts.get("run_id"):
        raise RunDirectoryError(
            f"{directory.path}: provenance.json is that of run {known.get('run_id')}, but config.yaml is that of run "
            f"{facts['run_id']}; restore both from a copy, or start a new run"
        )
    for name, digest in facts["digests"].items():
        if known["digests"].get(name) != digest:
            raise RunDirectoryError(
                f"{directory.path}: the {name.replace('_', ' ')} is not what this run began with "
                f"({str(known['digests'].get(name))[:12]} then, {digest[:12]} now), so resuming would mix two "
                "experiments; restore it, or start a new run"
            )
    directory.verify()


def _leaves(plain: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(plain, dict):
        return {prefix: plain}
    leaves: dict[str, Any] = {}
    for key, value in plain.items():
        leaves |= _leaves(value, f"{prefix}.{key}" if prefix else key)
    return leaves
