"""A run directory: what a run writes, and how to read it into tables and arrays; needs neither torch nor data."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import yaml
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.ledger import EventRow, LedgerRow, row_from_plain
from fedreuse.accounting.traffic import Traffic, savings
from fedreuse.core.checked import CHECK, parse_checked
from fedreuse.core.errors import RunDirectoryError, RunError, shortened, suggest
from fedreuse.core.files import YAML_LOADER, write_whole
from fedreuse.core.formats import RUN_DIRECTORY
from fedreuse.store.archive import SUFFIX, folders_in, opened
from fedreuse.store.journal import Journal
from fedreuse.store.manifest import EXPORTED, MANIFEST, compare, manifest_text, read_manifest
from fedreuse.store.parquet import from_parquet, to_parquet

if TYPE_CHECKING:
    from fedreuse.core.events import Stopped

__all__ = ["FINAL_LEDGER", "JOURNAL", "SERVER_FOLDER", "RunDirectory", "find_runs", "no_runs"]

FINAL_LEDGER = "final ledger"
"""Rows of the journal for what crosses after the last round."""

JOURNAL = "checkpoint.sqlite"
"""The journal of a run in progress."""

SERVER_FOLDER = "server"
"""Where the server's entries lie with `server_store: disk`, as long as the run is in progress."""

_COMPLETE, _STOPPED = "COMPLETE", "STOPPED"
_METRICS, _OPENING = "metrics.jsonl", "test-opened.json"
_UNCHECKED = 1
"""The format of directories without checksums: what they hold is unverified, and stays so."""
_SIGNS_OF_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, SafetensorError, yaml.YAMLError)


class RunDirectory:
    """The files of one run. A reader may open it at any time; a writer locks it first.

    Args:
        path: The directory; `RunDirectory.open` checks that it is one. `STUDY.tar.zst/RUN` is a run in an archive.
        as_it_is: Read what is there without comparing checksums, to look into a damaged directory.

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

    def __init__(self, path: str | Path, *, as_it_is: bool = False) -> None:
        """Opens nothing yet."""
        self.path = Path(path)
        self._as_it_is = as_it_is
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
        if not directory.file("config.yaml").exists():
            raise RunDirectoryError(
                f"{path} is not a run directory: there is no config.yaml in it; name the `out` of a run"
            )
        return directory

    def file(self, name: str) -> Path:
        """Return where a file of the directory can be read; of a run in an archive, its unpacked copy."""
        return opened(self.path) / name

    @property
    def is_complete(self) -> bool:
        """Whether the run came to its end; only then does it have a place in a table."""
        return self.file(_COMPLETE).exists()

    @property
    def is_sealed(self) -> bool:
        """Whether the run is complete and its test split was never opened; such a run keeps its journal."""
        return self.is_complete and self.summary["test_score"] is None

    @property
    def state(self) -> Literal["absent", "unfinished", "stopped", "complete"]:
        """How far the run came; `stopped` is what a listener asked for, `unfinished` runs now or was interrupted."""
        if self.is_complete:
            return "complete"
        if self.file(_STOPPED).exists():
            return "stopped"
        return "unfinished" if self.file("config.yaml").exists() else "absent"

    @property
    def stop_reason(self) -> str:
        """Why a stopped run was stopped; empty for others."""
        if self.state != "stopped":
            return ""
        with self._reading(_STOPPED):
            return str(self._read_json(_STOPPED)["reason"])

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        data = self._read("config.yaml")
        with self._reading("config.yaml"):
            plain: dict[str, Any] = yaml.load(data, YAML_LOADER)
            if not isinstance(plain, dict):
                raise ValueError("it holds no mapping")
        return plain

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the run comes from."""
        data = self._file("provenance.json").read_bytes()
        with self._reading("provenance.json"):
            plain = self._parsed(data)
            version = plain.get("format", _UNCHECKED)
            RUN_DIRECTORY.check(version, str(self.path))
            if version > _UNCHECKED and CHECK not in plain and not self._as_it_is:
                raise ValueError("its checksum is missing")
        return plain

    @property
    def is_checked(self) -> bool:
        """Whether what the directory holds has checksums; one that was begun before there were any is unverified."""
        known = self.file("provenance.json").exists()
        return known and self.provenance.get("format", _UNCHECKED) > _UNCHECKED

    @property
    def is_exported(self) -> bool:
        """Whether this is what `fedreuse lab export-results` keeps of a run: evidence without models and other bulk."""
        return self.file(EXPORTED).exists()

    @property
    def origin(self) -> str:
        """The checksum of the provenance, which ties the journal to the directory; empty in older ones."""
        return str(self.provenance.get(CHECK, "")) if self.file("provenance.json").exists() else ""

    def verify(self) -> None:
        """Refuse a complete run one of whose artifacts is missing or was changed; older ones cannot be verified.

        Raises:
            RunDirectoryError: With the name of the first such artifact, and how many there are.
        """
        wrong = compare(opened(self.path), self._digests(), may_lack=self.is_exported)
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise self._damaged(f"{wrong[0]}{more}")

    @property
    def summary(self) -> dict[str, Any]:
        """The result of a complete run."""
        if not self.is_complete:
            raise RunDirectoryError(f"{self.path} is incomplete; go on with resume=True")
        return self._read_json("summary.json")

    @property
    def opening(self) -> dict[str, Any] | None:
        """What the run recorded of its one look at the test split; None if it never looked."""
        return self._read_json(_OPENING) if self.file(_OPENING).exists() else None

    def metrics(self) -> list[dict[str, Any]]:
        """One mapping per round."""
        if self._has_journal:
            return self._read_journal("metrics")
        if not self.is_complete:
            self._check_journal()
            return []
        data = self._read(_METRICS)
        with self._reading(_METRICS):
            return [dict(json.loads(line)) for line in data.decode().splitlines()]

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
        with self._reading("ledger"):
            return [row_from_plain(row) for row in self._rows("ledger")]

    def events(self) -> list[EventRow]:
        """One row per selected client and round."""
        with self._reading("events"):
            return [EventRow(**row) for row in self._rows("events")]

    def _rows(self, table: Literal["ledger", "events"]) -> list[dict[str, Any]]:
        if self._has_journal:
            return self._read_journal(table)
        self._check_journal()
        return from_parquet(self._read(f"{table}.parquet"))

    @property
    def reference(self) -> Reference:
        """What one dense client costs."""
        return Reference(**self.provenance["reference"])

    def traffic(self) -> Mapping[str, Traffic]:
        """Bytes per round under every boundary."""
        return savings(self.ledger(), self.events(), self.reference, len(self.metrics()))

    def model(self) -> dict[str, np.ndarray]:
        """The trained network's tensors by name."""
        if not self.is_complete:
            raise RunDirectoryError(f"{self.path} has no trained model yet; go on with resume=True")
        if self.is_exported and not self.file("model.safetensors").exists():
            raise RunDirectoryError(
                f"{self.path} is the evidence of a run, which is kept without its model; use the run directory that it "
                "was exported from, or run its config.yaml again in another --out"
            )
        data = self._read("model.safetensors")
        with self._reading("model.safetensors"):
            arrays: dict[str, np.ndarray] = load(data)
        return arrays

    @property
    def has_rounds(self) -> bool:
        """Whether a round of this run is stored."""
        return self._num_rounds > 0

    @property
    def _num_rounds(self) -> int:
        path = self.file(_METRICS)
        return path.read_bytes().count(b"\n") if path.exists() else len(self.metrics())

    @property
    def _last_told(self) -> int:
        """The last round that was told to be safe; the journal had it by then."""
        path = self.file(_METRICS)
        return max(map(_round_of, path.read_bytes().splitlines()), default=0) if path.exists() else 0

    @property
    def _has_journal(self) -> bool:
        return self.file(JOURNAL).exists() and not self.is_complete

    def _read_journal(self, kind: str) -> list[dict[str, Any]]:
        return self.in_progress(kind)[0]

    def in_progress(self, *kinds: str) -> list[list[dict[str, Any]]]:
        """Rows of several kinds, `metrics`, `ledger` or `events`, as one commit of the journal left them."""
        self._check_journal()
        if self._journal is None and not self.file(JOURNAL).exists():
            return [[] for _ in kinds]
        with self._open_journal() as journal:
            return journal.together(*kinds)

    @contextmanager
    def _open_journal(self) -> Iterator[Journal]:
        """The writer's journal, or one for a look."""
        if self._journal is not None:
            yield self._journal
            return
        journal = Journal(self.file(JOURNAL), is_reader=True)
        try:
            yield journal
        finally:
            journal.close()

    def _read_json(self, name: str) -> dict[str, Any]:
        data = self._read(name)
        with self._reading(name):
            return self._parsed(data)

    def _parsed(self, data: bytes) -> dict[str, Any]:
        return dict(json.loads(data)) if self._as_it_is else parse_checked(data, is_required=False)

    def _read(self, name: str) -> bytes:
        """A file with the bytes that the run wrote."""
        data = self._file(name).read_bytes()
        if self._digests().get(name, "") not in ("", sha256(data).hexdigest()):
            raise self._damaged(f"{name} was changed")
        return data

    def _digests(self) -> Mapping[str, str]:
        """What the files of the directory must be: by its manifest, or before that by its provenance."""
        if self._as_it_is:
            return {}
        if not self.is_complete:
            origins: Mapping[str, str] = self.provenance["files"] if self.is_checked else {}
            return origins
        manifest = read_manifest(self.path)
        if manifest is None and self.is_checked:
            raise self._damaged(f"{MANIFEST} is missing")
        return manifest or {}

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """What a damaged file makes of its reader is told with its place."""
        try:
            yield
        except _SIGNS_OF_DAMAGE as error:
            raise self._damaged(f"{name} cannot be read: {shortened(str(error)) or type(error).__name__}") from None

    def _damaged(self, why: str) -> RunDirectoryError:
        return RunDirectoryError(
            f"{self.path} is not as it was written: {why}; bring it back from a copy, or run the configuration again "
            "in another `out`"
        )

    def _file(self, name: str) -> Path:
        path = self.file(name)
        if not path.exists():
            raise RunDirectoryError(
                f"{self.path} is incomplete: {name} is missing; go on with --resume, or bring it back"
            )
        return path

    def _check_journal(self) -> None:
        """Refuse an unfinished run that lost its journal, in whole or in its last rounds."""
        told = 0 if self.is_complete else self._last_told  # before the look at the journal, which grows first
        if not told:
            return
        known = 0
        if self.file(JOURNAL).exists():
            with self._open_journal() as journal:
                known = journal.round_number
        if known < told:
            raise self._damaged(f"{told} rounds were safe, and {JOURNAL} has {known or 'none'} of them")

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

    def verify_journal(self) -> None:
        """Refuse to go on with a journal that was damaged, or lost rounds that were safe."""
        self._check_journal()
        self.journal.verify()

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
        (self.path / _COMPLETE).unlink(missing_ok=True)  # of the sealed run; the files do not fit its manifest any more
        try:
            ledger = to_parquet(journal.rows("ledger") + journal.rows(FINAL_LEDGER), "ledger")
            self._write_bytes("ledger.parquet", ledger)
            self._write_bytes("events.parquet", to_parquet(journal.rows("events"), "events"))
            self.write_metrics(journal.rows("metrics"))
            tensors = {name: np.asarray(array, order="C") for name, array in model.items()}
            self._write_bytes("model.safetensors", save(tensors))
        except OSError as error:
            raise RunError(
                f"{self.path}: the results could not be written ({error}); free some disk space, then resume=True"
            ) from None
        self.write_json("summary.json", summary)
        if self.is_checked:
            self.write_text(MANIFEST, manifest_text(self.path))
        self.write_text(_COMPLETE, "")
        self.release()
        if is_sealed:
            return
        for leftover in self.path.glob(f"{JOURNAL}*"):
            leftover.unlink()
        shutil.rmtree(self.path / SERVER_FOLDER, ignore_errors=True)


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _round_of(line: bytes) -> int:
    """The round that a line of the metrics tells of; 0 if a crash tore it."""
    try:
        return int(json.loads(line)["round"])
    except (ValueError, TypeError, LookupError):
        return 0


def find_runs(path: str | Path) -> list[RunDirectory]:
    """Find run directories.

    Args:
        path: A run directory, a folder of run directories, or a folder of such folders. An archive (`.tar.zst`) counts
            as the folder that it holds.

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
    if RunDirectory(folder).file("config.yaml").exists():
        return [RunDirectory(folder)]
    if not opened(folder).is_dir():
        packed = folder.with_name(f"{folder.name}{SUFFIX}")
        other = f"name its archive {packed}" if packed.exists() else "name the `out` of a run or of a study"
        raise RunDirectoryError(f"{folder}: no such directory; {other}")
    inner = folders_in(folder)
    places = [*inner, *(below for place in inner for below in folders_in(place))]
    return [run for run in map(RunDirectory, places) if run.file("config.yaml").exists()]


def no_runs(*places: str | Path) -> RunDirectoryError:
    """The error of a command that works on runs, where there are none."""
    listed = ", ".join(map(str, places))
    return RunDirectoryError(
        f"{listed}: no run directory here, nor in the folders below; name the `out` of a run or of a study"
    )


def reference_to_plain(reference: Reference) -> dict[str, int]:
    """The reference as plain data, for the provenance."""
    return asdict(reference)
