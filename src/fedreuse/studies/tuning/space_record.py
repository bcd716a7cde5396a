"""Record of a search space on disk, with its digest and the time, written before the first trial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedreuse.core.bounded import parse_json
from fedreuse.core.checked import parse_checked, with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.store.archive import opened
from fedreuse.studies.tuning.space import Space, digest_of, make_space

__all__ = ["RUNS_FOLDER", "SPACE_FILE", "SpaceRecord", "read_space", "register"]

SPACE_FILE = "space.json"
RUNS_FOLDER = "trials"


@dataclass(frozen=True)
class SpaceRecord:
    """Search space as registered before the first trial.

    Attributes:
        name: Name of the space.
        digest: SHA-256 of the base and the rest of the file, with the rule.
        rule: The selection rule, for readers.
        registered: Time of registration in UTC; None in five stored searches, which were begun without it.
        definition: `base`, and the rest of the file as `space`.
    """

    name: str
    digest: str
    rule: Mapping[str, Any]
    registered: str | None
    definition: Mapping[str, Any]

    def space(self) -> Space:
        """Rebuild the space from its definition.

        Raises:
            RunDirectoryError: The digest does not match the definition.
            ConfigError: The definition names unknown parts.
        """
        base, plain = self.definition["base"], self.definition["space"]
        if digest_of(base, plain) != self.digest:
            raise RunDirectoryError(f"the space does not match its digest {self.digest[:12]}: it was changed")
        return make_space(self.name, base, plain)


def register(space: Space, out: Path) -> None:
    """Write the record of a space before its first trial; refuse a folder with another one.

    Raises:
        RunDirectoryError: The folder has the record of another space or rule, or a damaged one.
    """
    definition = parse_json(json.dumps({"base": space.base, "space": space.plain}, default=str))
    if not (out / SPACE_FILE).exists():
        registered = datetime.now(UTC).isoformat(timespec="seconds")
        record = {"registered": registered, "seeds": space.seeds, "rule": asdict(space.rule), **definition}
        _write(out, {"digest": space.digest, "name": space.name, **record})
        return
    known = read_space(out)
    if known.digest != space.digest:
        raise RunDirectoryError(
            f"{out} was begun with another space or rule ({known.digest[:12]}; this is {space.digest[:12]}), and the "
            "rule must not change after the first trial; choose another --out"
        )


def read_space(place: Path) -> SpaceRecord:
    """Read the record of a space.

    Raises:
        RunDirectoryError: The file is missing or was changed.
    """
    path = place / SPACE_FILE
    try:
        known = parse_checked(opened(path).read_bytes())
        definition = {key: known[key] for key in ("base", "space")}
        return SpaceRecord(known["name"], known["digest"], known["rule"], known.get("registered"), definition)
    except (OSError, ValueError, LookupError) as error:
        raise RunDirectoryError(
            f"{path} is not as it was written ({error}); restore it from a copy, or search again in another --out"
        ) from None


def _write(out: Path, content: Mapping[str, Any]) -> None:
    write_whole(out / SPACE_FILE, (json.dumps(with_check(content), indent=2) + "\n").encode())
