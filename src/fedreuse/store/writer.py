"""Writing half of a run directory: lock, journal, files that appear whole, and the results at the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save

from fedreuse.core.errors import RunError
from fedreuse.core.files import write_whole
from fedreuse.store.journal import Journal
from fedreuse.store.lock import WriteLock
from fedreuse.store.manifest import MANIFEST, manifest_text
from fedreuse.store.parquet import to_parquet

if TYPE_CHECKING:
    from fedreuse.core.events import Stopped

__all__ = ["COMPLETE", "FINAL_LEDGER", "JOURNAL", "METRICS", "SERVER_FOLDER", "STOPPED", "RunWriter"]

FINAL_LEDGER = "final ledger"
"""Kind of the journal's rows for messages after the last round."""

JOURNAL = "checkpoint.sqlite"
"""The journal of a run in progress."""

SERVER_FOLDER = "server"
"""Folder of the server's entries with `server_store: disk`; it exists while the run is in progress."""

COMPLETE = "COMPLETE"
"""Marker of a complete run, written last."""

STOPPED = "STOPPED"
"""Record of a stop that a listener asked for."""

METRICS = "metrics.jsonl"


class RunWriter:
    """Writing methods of a run directory; base of `RunDirectory`, which adds the reading ones."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = WriteLock(self.path)
        self._journal: Journal | None = None

    def lock(self) -> bool:
        """Keep other writers out until `release` or the end of this process.

        Returns:
            True if the folder was created here.

        Raises:
            RunDirectoryError: Another process writes here, or the folder cannot be written.
        """
        return self._lock.acquire()

    def release(self) -> None:
        """Close the journal and release the lock."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._lock.release()

    @property
    def journal(self) -> Journal:
        """The journal of the run in progress; created if absent."""
        if self._journal is None:
            self._journal = Journal(self.path / JOURNAL)
        return self._journal

    def write_text(self, name: str, text: str) -> None:
        """Write a file, whole or not at all.

        Raises:
            RunError: It could not be written.
        """
        try:
            write_whole(self.path / name, text.encode())
        except OSError as error:
            raise _disk_error(self.path / name, error) from None

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write plain data as indented JSON, whole or not at all."""
        self.write_text(name, json.dumps(content, indent=2) + "\n")

    def log(self, line: str) -> None:
        """Append one line to the log."""
        self._append("log.txt", f"{line}\n")

    def write_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the metrics of all committed rounds."""
        self.write_text(METRICS, _lines(rows))

    def append_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append the metrics of rounds that have just been committed."""
        self._append(METRICS, _lines(rows))

    def note_stop(self, stop: Stopped | None) -> None:
        """Record that, and why, a listener stopped the run; None removes the record when the run continues."""
        if stop is None:
            (self.path / STOPPED).unlink(missing_ok=True)
        else:
            self.log(f"stopped after round {stop.round_number}: {stop.reason}")
            self.write_json(STOPPED, {"round": stop.round_number, "reason": stop.reason})

    def finish(self, summary: Mapping[str, Any], model: Mapping[str, np.ndarray], is_sealed: bool = False) -> None:
        """Write tables, model, summary and manifest, the marker last; remove the journal unless the run is sealed.

        Raises:
            RunError: A file could not be written; the journal stays, so that the run can be resumed.
        """
        journal = self.journal
        # `unseal` finishes a complete run again; meanwhile its files do not match its manifest
        (self.path / COMPLETE).unlink(missing_ok=True)
        try:
            ledger = journal.rows("ledger") + journal.rows(FINAL_LEDGER)
            write_whole(self.path / "ledger.parquet", to_parquet(ledger, "ledger"))
            write_whole(self.path / "events.parquet", to_parquet(journal.rows("events"), "events"))
            self.write_metrics(journal.rows("metrics"))
            tensors = {name: np.asarray(array, order="C") for name, array in model.items()}
            write_whole(self.path / "model.safetensors", save(tensors))
        except OSError as error:
            raise _disk_error(self.path, error) from None
        self.write_json("summary.json", summary)
        self.write_text(MANIFEST, manifest_text(self.path))
        self.write_text(COMPLETE, "")
        self.release()
        if is_sealed:
            return
        for leftover in self.path.glob(f"{JOURNAL}*"):
            leftover.unlink()
        shutil.rmtree(self.path / SERVER_FOLDER, ignore_errors=True)

    def _append(self, name: str, text: str) -> None:
        path = self.path / name
        try:
            with path.open("a") as file:
                file.write(text)
        except OSError as error:
            raise _disk_error(path, error) from None


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _disk_error(path: Path, error: OSError) -> RunError:
    return RunError(f"{path} could not be written ({error}); free some disk space, then continue with resume=True")
