"""A run directory: what a run writes, and how to read it into tables and arrays; needs neither torch nor data."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from safetensors.numpy import load_file, save

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.ledger import EventRow, LedgerRow, row_from_plain
from fedreuse.accounting.traffic import Traffic, savings
from fedreuse.core.errors import RunDirectoryError, RunError, suggest
from fedreuse.core.files import write_whole
from fedreuse.core.formats import RUN_DIRECTORY
from fedreuse.runs.journal import Journal

if TYPE_CHECKING:
    from fedreuse.runs.events import Stopped

__all__ = ["FINAL_LEDGER", "JOURNAL", "SERVER_FOLDER", "RunDirectory", "find_runs"]

FINAL_LEDGER = "final ledger"
"""Rows of the journal for what crosses after the last round."""

JOURNAL = "checkpoint.sqlite"
"""The journal of a run in progress."""

SERVER_FOLDER = "server"
"""Where the server's entries lie with `server_store: disk`, as long as the run is in progress."""

_COMPLETE, _STOPPED = "COMPLETE", "STOPPED"
_METRICS = "metrics.jsonl"


class RunDirectory:
    """The files of one run. A reader may open it at any time; a writer locks it first.

    Args:
        path: The directory; `RunDirectory.open` checks that it is one.

    Raises:
        RunDirectoryError: By the readers, if a file is absent or damaged, or the run is not complete.

    Example:
        >>> from fedreuse import RunDirectory, load, run
        >>> small = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp"}
        >>> _ = run(load(small, ["rounds={count: 2, cohort: 2}", "local.epochs=1"]), "first")
        >>> directory = RunDirectory.open("first")
        >>> rounds, scores = directory.metric("validation_score")
        >>> rounds.tolist(), len(directory.events())
        ([1, 2], 4)
        >>> directory.traffic()["messages"].up.shape
        (2,)
    """

    def __init__(self, path: str | Path) -> None:
        """Opens nothing yet."""
        self.path = Path(path)
        self._lock: IO[str] | None = None
        self._journal: Journal | None = None

    def __repr__(self) -> str:
        """Where it is, and how far the run came."""
        return f"RunDirectory({str(self.path)!r}, state: {self.state}, rounds: {self._num_rounds})"

    # -- reading

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """An existing run directory."""
        directory = cls(path)
        if not (directory.path / "config.yaml").exists():
            raise RunDirectoryError(f"{path} is not a run directory: there is no config.yaml in it")
        return directory

    @property
    def is_complete(self) -> bool:
        """Whether the run came to its end; only then does it have a place in a table."""
        return (self.path / _COMPLETE).exists()

    @property
    def is_sealed(self) -> bool:
        """Whether the run is complete and its test split was never opened; such a run keeps its journal."""
        return self.is_complete and self.summary["test_score"] is None

    @property
    def state(self) -> Literal["absent", "unfinished", "stopped", "complete"]:
        """How far the run came; `stopped` is what a listener asked for, `unfinished` runs now or was interrupted."""
        if self.is_complete:
            return "complete"
        if (self.path / _STOPPED).exists():
            return "stopped"
        return "unfinished" if (self.path / "config.yaml").exists() else "absent"

    @property
    def stop_reason(self) -> str:
        """Why a stopped run was stopped; empty for others."""
        return str(self._read_json(_STOPPED)["reason"]) if self.state == "stopped" else ""

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        plain: dict[str, Any] = yaml.safe_load((self.path / "config.yaml").read_text())
        return plain

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the run comes from."""
        plain = self._read_json("provenance.json")
        RUN_DIRECTORY.check(plain.get("format", 1), str(self.path))
        return plain

    @property
    def summary(self) -> dict[str, Any]:
        """The result of a complete run."""
        if not self.is_complete:
            raise RunDirectoryError(f"{self.path} is incomplete; go on with resume=True")
        return self._read_json("summary.json")

    def metrics(self) -> list[dict[str, Any]]:
        """One mapping per round."""
        if self._has_journal:
            return self._read_journal("metrics")
        if not self.is_complete:
            return []
        lines = self._file(_METRICS).read_text().splitlines()
        return [json.loads(line) for line in lines]

    def metric(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Rounds and values of one metric, where it was taken.

        Args:
            name: A key of the rows of `metrics()`, such as `validation_score` or `up_bytes (messages)`.

        Raises:
            RunDirectoryError: No round has a metric of this name.
        """
        rows = self.metrics()
        known = {key for row in rows for key in row}
        if rows and name not in known:
            raise RunDirectoryError(f"{self.path} has no metric '{name}'; {suggest(name, known)}")
        taken = [(row["round"], row[name]) for row in rows if row.get(name) is not None]
        rounds, values = zip(*taken, strict=True) if taken else ((), ())
        return np.array(rounds, dtype=np.int64), np.array(values, dtype=np.float64)

    def frame(self) -> Any:
        """The metrics as a pandas table with a row per round.

        Returns:
            A `pandas.DataFrame` indexed by `round`; a metric that was not taken in a round is missing there.

        Example:
            >>> RunDirectory.open("runs/mine").frame()["validation_score"].dropna()  # doctest: +SKIP
        """
        import pandas as pd

        return pd.DataFrame(self.metrics()).set_index("round") if self.metrics() else pd.DataFrame()

    def ledger(self) -> list[LedgerRow]:
        """One row per envelope."""
        if self._has_journal:
            return [row_from_plain(row) for row in self._read_journal("ledger")]
        rows = pq.read_table(self._file("ledger.parquet")).to_pylist(maps_as_pydicts="strict")
        return [row_from_plain(row) for row in rows]

    def events(self) -> list[EventRow]:
        """One row per selected client and round."""
        rows = (
            self._read_journal("events")
            if self._has_journal
            else pq.read_table(self._file("events.parquet")).to_pylist()
        )
        return [EventRow(**row) for row in rows]

    @property
    def reference(self) -> Reference:
        """What one dense client costs."""
        return Reference(**self.provenance["reference"])

    def traffic(self) -> Mapping[str, Traffic]:
        """Bytes per round under every boundary."""
        return savings(self.ledger(), self.events(), self.reference, len(self.metrics()))

    def model(self) -> dict[str, np.ndarray]:
        """The trained network's tensors by name."""
        path = self.path / "model.safetensors"
        if not path.exists():
            raise RunDirectoryError(f"{self.path} has no trained model yet; go on with resume=True")
        arrays: dict[str, np.ndarray] = load_file(path)
        return arrays

    @property
    def has_rounds(self) -> bool:
        """Whether a round of this run is stored."""
        return self._num_rounds > 0

    @property
    def _num_rounds(self) -> int:
        path = self.path / _METRICS
        return path.read_bytes().count(b"\n") if path.exists() else len(self.metrics())

    @property
    def _has_journal(self) -> bool:
        return (self.path / JOURNAL).exists() and not self.is_complete

    def _read_journal(self, kind: str) -> list[dict[str, Any]]:
        if self._journal is not None:
            return self._journal.rows(kind)
        journal = Journal(self.path / JOURNAL)
        try:
            return journal.rows(kind)
        finally:
            journal.close()

    def _read_json(self, name: str) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(self._file(name).read_text())
        return plain

    def _file(self, name: str) -> Path:
        if not (self.path / name).exists():
            raise RunDirectoryError(f"{self.path} is incomplete: {name} is missing")
        return self.path / name

    # -- writing

    def lock(self) -> bool:
        """Make sure that nobody else writes here, until this process ends or `release`; whether the folder is new."""
        try:
            is_new = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / "LOCK").open("a+")
        except OSError as error:
            raise RunDirectoryError(f"{self.path} cannot be written ({error}); choose another `out`") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            owner = self._lock.read().strip() or "unknown"
            self._lock.close()
            self._lock = None
            raise RunDirectoryError(
                f"{self.path} is in use by process {owner}; wait for it to end, or choose another `out`"
            ) from None
        try:
            os.ftruncate(self._lock.fileno(), 0)
            os.write(self._lock.fileno(), str(os.getpid()).encode())
        except OSError as error:
            self.release()
            raise RunDirectoryError(f"{self.path} cannot be written ({error}); choose another `out`") from None
        # somebody else may have made it, and even run there, before it was locked
        return is_new and [path.name for path in self.path.iterdir()] == ["LOCK"]

    def release(self) -> None:
        """Release the lock, so that others may write."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def journal(self) -> Journal:
        """The journal of the run in progress."""
        if self._journal is None:
            self._journal = Journal(self.path / JOURNAL)
        return self._journal

    def write_text(self, name: str, text: str) -> None:
        """A file that is there whole or not at all."""
        try:
            self._write_bytes(name, text.encode())
        except OSError as error:
            raise RunError(
                f"{self.path / name} could not be written ({error}); free some disk space, then go on with resume=True"
            ) from None

    def _write_bytes(self, name: str, data: bytes) -> None:
        write_whole(self.path / name, data)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Plain data, readable."""
        self.write_text(name, json.dumps(content, indent=2) + "\n")

    def log(self, line: str) -> None:
        """One line of the log."""
        self._append("log.txt", f"{line}\n")

    def write_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """The metrics of all rounds that are safe."""
        self.write_text(_METRICS, _lines(rows))

    def append_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """The metrics of rounds that have just become safe."""
        self._append(_METRICS, _lines(rows))

    def note_stop(self, stop: Stopped | None) -> None:
        """Note that, and why, a listener stopped the run; None: it goes on."""
        if stop is None:
            (self.path / _STOPPED).unlink(missing_ok=True)
        else:
            self.log(f"stopped after round {stop.round_number}: {stop.reason}")
            self.write_json(_STOPPED, {"round": stop.round_number, "reason": stop.reason})

    def _append(self, name: str, text: str) -> None:
        path = self.path / name
        try:
            with path.open("a") as file:
                file.write(text)
        except OSError as error:
            raise RunError(
                f"{path} could not be written ({error}); free some disk space, then go on with resume=True"
            ) from None

    def finish(self, summary: Mapping[str, Any], model: Mapping[str, np.ndarray], is_sealed: bool = False) -> None:
        """Tables, model, summary, and the marker as the last write; a sealed run keeps its journal to be opened."""
        journal = self.journal
        try:
            self._write_table("ledger", journal.rows("ledger") + journal.rows(FINAL_LEDGER), _LEDGER)
            self._write_table("events", journal.rows("events"), _EVENTS)
            self.write_metrics(journal.rows("metrics"))
            tensors = {name: np.asarray(array, order="C") for name, array in model.items()}
            self._write_bytes("model.safetensors", save(tensors))
        except OSError as error:
            raise RunError(
                f"{self.path}: the results could not be written ({error}); free some disk space, then resume=True"
            ) from None
        self.write_json("summary.json", summary)
        self.write_text(_COMPLETE, "")
        self.release()
        if is_sealed:
            return
        for leftover in self.path.glob(f"{JOURNAL}*"):
            leftover.unlink()
        shutil.rmtree(self.path / SERVER_FOLDER, ignore_errors=True)

    def _write_table(self, name: str, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
        table = BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), table)
        self._write_bytes(f"{name}.parquet", table.getvalue())


_WORK = pa.struct(
    [("training_steps", pa.int64()), ("training_examples", pa.int64()), ("proxy_gradients", pa.int64()),
     ("proxy_examples", pa.int64()), ("flops", pa.int64()), ("seconds", pa.float64())]
)  # fmt: skip
_LEDGER = pa.schema(
    [("round_number", pa.int64()), ("exchange", pa.int64()), ("client", pa.int64()), ("direction", pa.string()),
     ("kind", pa.string()), ("purpose", pa.string()), ("status", pa.string()),
     ("fields", pa.map_(pa.string(), pa.int64())), ("value_bytes", pa.int64()), ("header_bytes", pa.int64()),
     ("total_bytes", pa.int64()), ("work", _WORK), ("body", pa.map_(pa.string(), pa.int64()))]
)  # fmt: skip
_EVENTS = pa.schema(
    [("round_number", pa.int64()), ("client", pa.int64()), ("outcome", pa.string()), ("reason", pa.string()),
     ("age", pa.int64()), ("score", pa.float64())]
)  # fmt: skip


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def find_runs(path: str | Path) -> list[RunDirectory]:
    """Find run directories.

    Args:
        path: A run directory, a folder of run directories, or a folder of such folders.

    Returns:
        The run directories, complete or not, sorted by path.

    Raises:
        RunDirectoryError: If there is no such folder.

    Example:
        >>> from fedreuse import find_runs
        >>> [directory.path for directory in find_runs(".") if directory.is_complete]
        []
    """
    folder = Path(path)
    if (folder / "config.yaml").exists():
        return [RunDirectory.open(folder)]
    if not folder.is_dir():
        raise RunDirectoryError(f"{folder}: no such directory")
    found = sorted(file.parent for file in folder.glob("*/config.yaml"))
    found += sorted(file.parent for file in folder.glob("*/*/config.yaml"))
    return [RunDirectory.open(run) for run in found]


def reference_to_plain(reference: Reference) -> dict[str, int]:
    """The reference as plain data, for the provenance."""
    return asdict(reference)
