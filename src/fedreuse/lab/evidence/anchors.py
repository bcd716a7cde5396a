"""Anchors of a plan's log: a file that the user keeps elsewhere, or a git commit.

The owner of a study can write its files anew, with digests that fit. A head of the log that is kept elsewhere, or is in
a commit that others have, shows that the plan was there by then.
"""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fedreuse.core.bounded import read_bytes
from fedreuse.core.checked import parse_checked, with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.store.archive import is_archive, name_of, opened
from fedreuse.store.chain import heads_of, read_chain
from fedreuse.store.consistency import Check
from fedreuse.store.study_file import PLAN_LOG

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_anchor", "write_anchor"]


def write_anchor(place: Path, out: Path) -> str:
    """Write a file that names the head of a study's log; return the head.

    Args:
        place: The folder of the study.
        out: The file, to be kept where the study cannot change it.

    Raises:
        RunDirectoryError: The study has no log, the log is damaged, or the file exists or cannot be written.

    Example:
        >>> from fedreuse.lab.evidence.anchors import write_anchor
        >>> write_anchor(Path("runs/confirmed"), Path("confirmed.anchor.json"))[:12]  # doctest: +SKIP
        '3f0c6a1e9b52'
    """
    read_chain(place / PLAN_LOG)
    heads = heads_of(place / PLAN_LOG)
    if not heads:
        raise RunDirectoryError(f"{place} has no {PLAN_LOG}; start a study with a plan by `fedreuse lab confirm`")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    content = with_check({"study": name_of(place), "entries": len(heads), "head": heads[-1], "made": now})
    if out.exists():
        raise RunDirectoryError(f"{out} exists already and is not overwritten; choose another --out")
    try:
        write_whole(out, (json.dumps(content, indent=2) + "\n").encode())
    except OSError as error:
        raise RunDirectoryError(f"{out} could not be written ({error}); choose another --out") from None
    return heads[-1]


def check_anchor(place: Path, anchor: Path | None = None) -> Check:
    """Compare the log of a study with an anchor file, and look for a commit that holds it.

    Args:
        place: The folder or archive of the study.
        anchor: A file of `write_anchor`.

    Raises:
        RunDirectoryError: The log does not have the head of the anchor.
    """
    if anchor is not None:
        return Check("anchor", "ok", _in_file(place, anchor))
    commit = _in_commit(place)
    if commit:
        return Check("anchor", "ok", commit)
    return Check(
        "anchor", "recorded", "none: the owner could have written plan and runs anew; `fedreuse lab anchor` makes one"
    )


def _in_file(place: Path, anchor: Path) -> str:
    try:
        known = parse_checked(read_bytes(anchor))
        number, head, made = int(known["entries"]), str(known["head"]), str(known["made"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RunDirectoryError(f"{anchor} is not an anchor ({error}); name a file of `fedreuse lab anchor`") from None
    heads = heads_of(place / PLAN_LOG)
    if not 0 < number <= len(heads) or heads[number - 1] != head:
        raise RunDirectoryError(
            f"{PLAN_LOG} does not have the head {head[:12]} that {anchor.name} holds since {made}: it was written anew"
        )
    return f"{anchor.name} of {made} holds line {number} of {len(heads)} of {PLAN_LOG}"


def _in_commit(place: Path) -> str:
    """Return the first commit whose log is the beginning of this one, or that holds this archive; empty without one."""
    archive = next((path for path in (place, *place.parents) if is_archive(path)), None)
    if archive is not None:
        is_changed = _git(archive, "status", "--porcelain", "--", archive.name) != ""
        commit = "" if is_changed else _git(archive, "log", "-1", "--format=%h of %cI", "--", archive.name)
        return f"commit {commit} holds {archive.name}" if commit else ""
    log = place / PLAN_LOG
    if not opened(log).exists():
        return ""
    content = opened(log).read_text(encoding="utf-8")
    for line in _git(log, "log", "--reverse", "--format=%H %h of %cI", "--", log.name).splitlines():
        commit, _, shown = line.partition(" ")
        stored = _git(log, "show", f"{commit}:./{log.name}")
        if stored and content.startswith(stored + "\n"):
            return f"commit {shown} holds {len(stored.splitlines())} of {len(content.splitlines())} lines of {log.name}"
    return ""


def _git(file: Path, *words: str) -> str:
    """Return the output of git in the folder of a file; empty if it fails, for `status` a text."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=file.absolute().parent, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "failed" if words[0] == "status" else ""
    return done.stdout.strip()
