"""Manifest of a complete run: the SHA-256 of every artifact, which reveals changed and missing files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from fedreuse.core.checked import parse_checked, with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.names import inside, relative_name
from fedreuse.store.archive import opened

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
"""Files written before the first round; the provenance holds their digests."""
_RESULTS = (
    "provenance.json", "test-opened.json", "metrics.jsonl", "ledger.parquet", "events.parquet", "model.safetensors",
    "summary.json",
)  # fmt: skip
_KEPT = ("models/*.safetensors", "models/*.state", "states/*.sqlite", "checkpoints/*.sqlite")
_BULK = ("model.safetensors", "partition.npz", "validation.npz", "models", "states", "checkpoints", "clients")
EVIDENCE = "results.json"
"""The manifest of an exported study."""
ROWS_FILE = "rows.csv"
"""Table of an exported study with a row per run, for spreadsheets; all of it is also in the runs."""
EXPORTED = "EXPORTED"
"""Marker of an exported run."""
_CLIENTS = "clients"
"""Folder with a file per client; it counts as one artifact."""


def digests_of(place: Path, names: tuple[str, ...] = ORIGINS) -> dict[str, str]:
    """Return the SHA-256 of each of the files that is there."""
    return {name: _digest(place / name) for name in names if (place / name).exists()}


def manifest_text(place: Path) -> str:
    """Return the manifest of the files that a run directory holds now."""
    kept = sorted(str(file.relative_to(place)) for pattern in _KEPT for file in place.glob(pattern))
    return json.dumps(with_check({"files": digests_of(place, (*ORIGINS, *_RESULTS, *kept, _CLIENTS))}), indent=2) + "\n"


def read_manifest(place: Path, name: str = MANIFEST) -> dict[str, str] | None:
    """Return the digests of a manifest by artifact; None if there is none.

    Raises:
        RunDirectoryError: The manifest itself was changed, or names a file outside its folder.

    """
    content = _read(place / name)
    return (
        None
        if content is None
        else {str(relative_name(name)): str(digest) for name, digest in content["files"].items()}
    )


def read_absent(place: Path) -> tuple[str, ...]:
    """Return the folders of the runs that an export lacks; empty if it is complete, or no export.

    Raises:
        RunDirectoryError: The manifest of the export was changed.

    """
    return tuple((_read(place / EVIDENCE) or {}).get("absent", ()))


def forget_export(place: Path) -> None:
    """Remove the files that describe an export as a whole, for a partial export that continues as a study."""
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
            f"{path} is damaged ({error}), so that the files of its folder cannot be verified; restore it from a copy, "
            "or run the configuration again in another `out`"
        ) from None
    return content


def compare(place: Path, digests: Mapping[str, str], may_lack: bool = False) -> list[str]:
    """Compare the artifacts of a folder with their digests.

    Args:
        place: The folder, or an archive of it.
        digests: Expected SHA-256 by name.
        may_lack: Accept that artifacts are missing that an export leaves out.

    Returns:
        One remark per artifact that is missing or was changed.
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
    """Return whether an export leaves an artifact out: models, states, and the partition."""
    return name.split("/")[0] in _BULK


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and digests of all files in a folder."""
    if path.is_dir():
        listed = [f"{file.name} {_digest(file)}\n" for file in sorted(path.iterdir()) if file.is_file()]
        return sha256("".join(listed).encode()).hexdigest()
    with path.open("rb") as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
