"""The space of a search on disk: written whole, with its digest and the time, before the first trial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedreuse.core.checked import parse_checked, with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.studies.tuning.space import Space, digest_of, make_space

__all__ = ["RUNS_FOLDER", "SPACE_FILE", "SpaceRecord", "read_space", "register"]

SPACE_FILE = "space.json"
RUNS_FOLDER = "trials"


@dataclass(frozen=True)
class SpaceRecord:
    """What was written before the first trial.

    Attributes:
        name: What the space is called.
        digest: SHA-256 of the base and of everything that the file says beside it, the rule included.
        rule: The rule by itself, for a reader.
        registered: When it was written, in UTC; None if the search was begun before times were written.
        definition: `base`, and the rest of the file as `space`; None if only the digest was written.
    """

    name: str
    digest: str
    rule: Mapping[str, Any]
    registered: str | None
    definition: Mapping[str, Any] | None

    def space(self) -> Space:
        """The space again, from its definition.

        Raises:
            RunDirectoryError: Only its digest was written, or the definition has another one.
            ConfigError: The definition names parts that are not known here.
        """
        if self.definition is None:
            raise RunDirectoryError(
                "only the digest of the space was written; the same `fedreuse tune` command again, with this folder as "
                "--out, adds the space itself"
            )
        base, plain = self.definition["base"], self.definition["space"]
        if digest_of(base, plain) != self.digest:
            raise RunDirectoryError(f"the space does not have its digest {self.digest[:12]}: it was changed")
        return make_space(self.name, base, plain)


def register(space: Space, out: Path) -> None:
    """Write a space down before its first trial; where it stands already, another one is refused.

    Raises:
        RunDirectoryError: The folder was begun with another space or rule, or its record is damaged.
    """
    definition = json.loads(json.dumps({"base": space.base, "space": space.plain}, default=str))
    if not (out / SPACE_FILE).exists():
        registered = datetime.now(UTC).isoformat(timespec="seconds")
        said = {"registered": registered, "seeds": space.seeds, "rule": asdict(space.rule), **definition}
        _write(out, {"digest": space.digest, "name": space.name, **said})
        return
    known = read_space(out)
    if known.digest != space.digest:
        raise RunDirectoryError(
            f"{out} was begun with another space or rule ({known.digest[:12]}; this is {space.digest[:12]}), and a "
            "rule that changes after the first trial chooses nothing; choose another --out"
        )
    if known.definition is None:  # the digest, which was there before the first trial, vouches for what is added
        _write(out, {**json.loads((out / SPACE_FILE).read_bytes()), **definition})


def read_space(place: Path) -> SpaceRecord:
    """What was written of a space.

    Raises:
        RunDirectoryError: The file is absent, or not as it was written.
    """
    path = place / SPACE_FILE
    try:
        known = parse_checked(path.read_bytes(), is_required=False)
        definition = {key: known[key] for key in ("base", "space")} if "base" in known else None
        return SpaceRecord(known["name"], known["digest"], known["rule"], known.get("registered"), definition)
    except (OSError, ValueError, LookupError) as error:
        raise RunDirectoryError(
            f"{path} is not as it was written ({error}); bring it back from a copy, or search again in another --out"
        ) from None


def _write(out: Path, content: Mapping[str, Any]) -> None:
    write_whole(out / SPACE_FILE, (json.dumps(with_check(content), indent=2) + "\n").encode())
