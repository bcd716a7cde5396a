"""The manifest of a complete run: a SHA-256 of every artifact, so that a changed or missing file is noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from fedreuse.core.checked import parse_checked, with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.archive import opened
from fedreuse.store.names import inside, relative_name

__all__ = [
    "EVIDENCE",
    "EXPORTED",
    "MANIFEST",
    "ORIGINS",
    "ROWS_FILE",
    "compare",
    "digests_of",
    "forget_export",
    "is_bulk",
    "manifest_text",
    "read_absent",
    "read_manifest",
]

MANIFEST = "manifest.json"
ORIGINS = ("config.yaml", "schedule.json", "partition.npz", "validation.npz")
"""What is there before the first round; the provenance holds their digests."""
_RESULTS = (
    "provenance.json", "test-opened.json", "metrics.jsonl", "ledger.parquet", "events.parquet", "model.safetensors",
    "summary.json",
)  # fmt: skip
_KEPT = ("models/*.safetensors", "models/*.state", "states/*.sqlite", "checkpoints/*.sqlite")
_BULK = ("model.safetensors", "partition.npz", "validation.npz", "models", "states", "checkpoints", "clients")
EVIDENCE = "results.json"
"""The manifest of an exported study."""
ROWS_FILE = "rows.csv"
"""Of an exported study: a row per run, for spreadsheets; everything in it is also in the runs."""
EXPORTED = "EXPORTED"
"""The marker of an export."""
_CLIENTS = "clients"
"""A folder with a file per client, which counts as one artifact."""


def digests_of(place: Path, names: tuple[str, ...] = ORIGINS) -> dict[str, str]:
    """Return the SHA-256 of each of the files that is there."""
    return {name: _digest(place / name) for name in names if (place / name).exists()}


def manifest_text(place: Path) -> str:
    """The manifest of what lies in a run directory now."""
    kept = sorted(str(file.relative_to(place)) for pattern in _KEPT for file in place.glob(pattern))
    return json.dumps(with_check({"files": digests_of(place, (*ORIGINS, *_RESULTS, *kept, _CLIENTS))}), indent=2) + "\n"


def read_manifest(place: Path, name: str = MANIFEST) -> dict[str, str] | None:
    """The digests of a manifest by artifact; None if there is none.

    Raises:
        RunDirectoryError: The manifest itself was changed.

    """
    content = _read(place / name)
    return (
        None
        if content is None
        else {str(relative_name(name)): str(digest) for name, digest in content["files"].items()}
    )


def read_absent(place: Path) -> tuple[str, ...]:
    """The runs that an export says it is without, by folder; none for what is no export.

    Raises:
        RunDirectoryError: The manifest of the export was changed.

    """
    return tuple((_read(place / EVIDENCE) or {}).get("absent", ()))


def forget_export(place: Path) -> None:
    """A partial export that goes on is a study again: what described it as a whole is no longer true."""
    for name in (EVIDENCE, ROWS_FILE):
        (place / name).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = parse_checked(opened(path).read_bytes())
        if not isinstance(content["files"], dict):
            raise ValueError("no digests of files")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError) as error:
        raise RunDirectoryError(
            f"{path} is not as it was written ({error}), so that nothing in its folder can be trusted; bring it back "
            "from a copy, or run the configuration again in another `out`"
        ) from None
    return content


def compare(place: Path, digests: Mapping[str, str], may_lack: bool = False) -> list[str]:
    """What is wrong with the artifacts of a folder: those that are gone, and those that were changed.

    `may_lack`: an export may be without the artifacts that are left out of one.
    """
    wrong = []
    for name, digest in digests.items():
        path = inside(opened(place), name)
        if not path.exists():
            wrong += [] if may_lack and is_bulk(name) else [f"{name} is missing"]
        elif _digest(path) != digest:
            wrong.append(f"{name} was changed")
    return wrong


def is_bulk(name: str) -> bool:
    """Whether an artifact is left out of an export: models, states, and who has which examples."""
    return name.split("/")[0] in _BULK


def _digest(path: Path) -> str:
    """Of a file, or of all files in a folder by their names."""
    if path.is_dir():
        listed = [f"{file.name} {_digest(file)}\n" for file in sorted(path.iterdir()) if file.is_file()]
        return sha256("".join(listed).encode()).hexdigest()
    with path.open("rb") as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
