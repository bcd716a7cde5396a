"""Run directory: the files of one run, and their readers as tables and arrays; needs neither torch nor data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.ledger import EventRow, LedgerRow, row_from_plain
from fedreuse.accounting.traffic import savings
from fedreuse.core.bounded import json_lines, parse_json, parse_yaml
from fedreuse.core.checked import CHECK, parse_checked
from fedreuse.core.errors import RunDirectoryError, shortened, suggest
from fedreuse.core.formats import RUN_DIRECTORY
from fedreuse.store.archive import SUFFIX, folders_in, opened
from fedreuse.store.journal import Journal
from fedreuse.store.manifest import EXPORTED, MANIFEST, compare, read_manifest
from fedreuse.store.parquet import from_parquet
from fedreuse.store.writer import COMPLETE, FINAL_LEDGER, JOURNAL, METRICS, SERVER_FOLDER, STOPPED, RunWriter

if TYPE_CHECKING:
    from fedreuse.accounting.traffic import Traffic

__all__ = ["FINAL_LEDGER", "JOURNAL", "SERVER_FOLDER", "RunDirectory", "find_runs", "no_runs", "reference_to_plain"]

_CONFIG, _PROVENANCE, _OPENING, _MODEL = "config.yaml", "provenance.json", "test-opened.json", "model.safetensors"
_SIGNS_OF_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, SafetensorError)


class RunDirectory(RunWriter):
    """Files of one run. Readers may open it at any time; a writer locks it first.

    Args:
        path: The directory; `RunDirectory.open` checks that it is one. `STUDY.tar.zst/RUN` is a run in an archive.
        as_it_is: Read without comparing checksums, to look into a damaged directory.

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
        super().__init__(path)
        self._as_it_is = as_it_is

    def __repr__(self) -> str:
        """Return path, state and number of rounds."""
        return f"RunDirectory({str(self.path)!r}, state: {self.state}, rounds: {self._num_rounds})"

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """Return an existing run directory.

        Raises:
            RunDirectoryError: There is no `config.yaml` in the folder.
        """
        directory = cls(path)
        if not directory.file(_CONFIG).exists():
            raise RunDirectoryError(
                f"{path} is not a run directory: there is no {_CONFIG} in it; name the `out` of a run"
            )
        return directory

    def file(self, name: str) -> Path:
        """Return the path at which a file can be read; of a run in an archive, that of its unpacked copy."""
        return opened(self.path) / name

    @property
    def is_complete(self) -> bool:
        """True once all rounds and results are written; tables use complete runs only."""
        return self.file(COMPLETE).exists()

    @property
    def is_sealed(self) -> bool:
        """True for a run that is complete without a test evaluation; such a run keeps its journal."""
        # an open test split whose score is undefined (NaN) is stored as null too
        return self.is_complete and self.summary["test_score"] is None and self.config.get("test") == "sealed"

    @property
    def is_exported(self) -> bool:
        """True for an export of `fedreuse lab export-results`, without models and other bulk."""
        return self.file(EXPORTED).exists()

    @property
    def state(self) -> Literal["absent", "unfinished", "stopped", "complete"]:
        """Progress of the run: `stopped` by a listener; `unfinished` is running now or was interrupted."""
        if self.is_complete:
            return "complete"
        if self.file(STOPPED).exists():
            return "stopped"
        return "unfinished" if self.file(_CONFIG).exists() else "absent"

    @property
    def stop_reason(self) -> str:
        """The reason of a stopped run; empty for others."""
        if self.state != "stopped":
            return ""
        with self._reading(STOPPED):
            return str(self._read_json(STOPPED)["reason"])

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        data = self._read(_CONFIG)
        with self._reading(_CONFIG):
            plain: dict[str, Any] = parse_yaml(data)
            if not isinstance(plain, dict):
                raise ValueError("it holds no mapping")
        return plain

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions, hardware, digests and command of the run."""
        data = self._existing(_PROVENANCE).read_bytes()
        with self._reading(_PROVENANCE):
            plain = self._parsed(data)
            RUN_DIRECTORY.check(plain.get("format"), str(self.path))
            if CHECK not in plain and not self._as_it_is:
                raise ValueError("its checksum is missing")
        return plain

    @property
    def origin(self) -> str:
        """The checksum of the provenance, which ties the journal to the directory; empty before there is one."""
        return str(self.provenance[CHECK]) if self.file(_PROVENANCE).exists() else ""

    @property
    def summary(self) -> dict[str, Any]:
        """The result of a complete run."""
        if not self.is_complete:
            raise RunDirectoryError(f"{self.path} is incomplete; continue it with resume=True")
        return self._read_json("summary.json")

    @property
    def opening(self) -> dict[str, Any] | None:
        """The record of the run's test evaluation; None without one."""
        return self._read_json(_OPENING) if self.file(_OPENING).exists() else None

    @property
    def reference(self) -> Reference:
        """Bytes of one client of dense FedAvg."""
        return Reference(**self.provenance["reference"])

    @property
    def has_rounds(self) -> bool:
        """True if a round of this run is stored."""
        return self._num_rounds > 0

    def metrics(self) -> list[dict[str, Any]]:
        """Return one mapping per committed round."""
        if self._has_journal:
            return self.in_progress("metrics")[0]
        if not self.is_complete:
            self._check_journal()
            return []
        data = self._read(METRICS)
        with self._reading(METRICS):
            return [dict(row) for row in json_lines(data)]

    def metric(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return rounds and values of one metric; rounds without a value are left out.

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
        """Return the metrics as a pandas table with a row per round.

        Returns:
            A `pandas.DataFrame` indexed by `round`; a metric that was not taken in a round is missing there.

        Example:
            >>> RunDirectory.open("runs/mine").frame()["validation_score"].dropna()  # doctest: +SKIP
        """
        import pandas as pd

        return pd.DataFrame(self.metrics()).set_index("round") if self.metrics() else pd.DataFrame()

    def ledger(self) -> list[LedgerRow]:
        """Return one row per message."""
        with self._reading("ledger"):
            return [row_from_plain(row) for row in self._rows("ledger")]

    def events(self) -> list[EventRow]:
        """Return one row per selected client and round."""
        with self._reading("events"):
            return [EventRow(**row) for row in self._rows("events")]

    def traffic(self) -> Mapping[str, Traffic]:
        """Return the bytes per round under every boundary."""
        return savings(self.ledger(), self.events(), self.reference, len(self.metrics()))

    def model(self) -> dict[str, np.ndarray]:
        """Return the trained network's tensors by name.

        Raises:
            RunDirectoryError: The run is not complete, or is an export without its model.
        """
        if not self.is_complete:
            raise RunDirectoryError(f"{self.path} has no trained model yet; continue it with resume=True")
        if self.is_exported and not self.file(_MODEL).exists():
            raise RunDirectoryError(
                f"{self.path} is an exported run, which is kept without its model; use the run directory that it was "
                "exported from, or run its config.yaml again in another `out`"
            )
        data = self._read(_MODEL)
        with self._reading(_MODEL):
            arrays: dict[str, np.ndarray] = load(data)
        return arrays

    def in_progress(self, *kinds: str) -> list[list[dict[str, Any]]]:
        """Return the journal's rows of several kinds as of one commit.

        Args:
            *kinds: `metrics`, `ledger` or `events`.
        """
        self._check_journal()
        if self._journal is None and not self.file(JOURNAL).exists():
            return [[] for _ in kinds]
        with self._open_journal() as journal:
            return journal.together(*kinds)

    def verify(self) -> None:
        """Compare all artifacts of a complete run with its manifest.

        Raises:
            RunDirectoryError: With the first artifact that is missing or was changed, and their number.
        """
        wrong = compare(opened(self.path), self._digests(), may_lack=self.is_exported)
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise self._damaged(f"{wrong[0]}{more}")

    def verify_journal(self) -> None:
        """Check the whole journal before a run continues.

        Raises:
            RunDirectoryError: The journal is damaged, or lacks rounds that were committed.
        """
        self._check_journal()
        self.journal.verify()

    def _rows(self, table: Literal["ledger", "events"]) -> list[dict[str, Any]]:
        if self._has_journal:
            return self.in_progress(table)[0]
        self._check_journal()
        return from_parquet(self._read(f"{table}.parquet"))

    @property
    def _num_rounds(self) -> int:
        path = self.file(METRICS)
        return path.read_bytes().count(b"\n") if path.exists() else len(self.metrics())

    @property
    def _last_in_metrics(self) -> int:
        """The last round in the file of metrics, which is written after the journal's commit."""
        path = self.file(METRICS)
        return max(map(_round_of, path.read_bytes().splitlines()), default=0) if path.exists() else 0

    @property
    def _has_journal(self) -> bool:
        return self.file(JOURNAL).exists() and not self.is_complete

    @contextmanager
    def _open_journal(self) -> Iterator[Journal]:
        """Yield the writer's journal, or one that is opened for reading and closed again."""
        if self._journal is not None:
            yield self._journal
            return
        journal = Journal(self.file(JOURNAL), is_reader=True)
        try:
            yield journal
        finally:
            journal.close()

    def _check_journal(self) -> None:
        """Refuse an unfinished run whose journal is missing or lacks committed rounds."""
        # metrics first: a writer commits to the journal first, so the journal read later has at least as many rounds
        committed = 0 if self.is_complete else self._last_in_metrics
        if not committed:
            return
        known = 0
        if self.file(JOURNAL).exists():
            with self._open_journal() as journal:
                known, origin = journal.round_number, journal.origin
            if origin and not self._as_it_is and origin != self.origin:
                raise self._damaged(f"{JOURNAL} was not written by the run of {_PROVENANCE}")
        if known < committed:
            raise self._damaged(f"{committed} rounds were committed, and {JOURNAL} has {known or 'none'} of them")

    def _read_json(self, name: str) -> dict[str, Any]:
        data = self._read(name)
        with self._reading(name):
            return self._parsed(data)

    def _parsed(self, data: bytes) -> dict[str, Any]:
        """Parse JSON; the files that carry their own checksum must match it."""
        return dict(parse_json(data)) if self._as_it_is else parse_checked(data, is_required=False)

    def _read(self, name: str) -> bytes:
        """Return the bytes of a file, compared with its digest."""
        data = self._existing(name).read_bytes()
        if self._digests().get(name, "") not in ("", sha256(data).hexdigest()):
            raise self._damaged(f"{name} was changed")
        return data

    def _digests(self) -> Mapping[str, str]:
        """Return the expected digests of files: those of the manifest, or before the end those of the provenance."""
        if self._as_it_is:
            return {}
        if not self.is_complete:
            origins: Mapping[str, str] = self.provenance["files"] if self.file(_PROVENANCE).exists() else {}
            return origins
        manifest = read_manifest(self.path)
        if manifest is None:
            raise self._damaged(f"{MANIFEST} is missing")
        return manifest

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Re-raise errors of parsing as damage of a file."""
        try:
            yield
        except _SIGNS_OF_DAMAGE as error:
            raise self._damaged(f"{name} cannot be read: {shortened(str(error)) or type(error).__name__}") from None

    def _damaged(self, why: str) -> RunDirectoryError:
        return RunDirectoryError(
            f"{self.path} is damaged: {why}; restore it from a copy, or run the configuration again in another `out`"
        )

    def _existing(self, name: str) -> Path:
        path = self.file(name)
        if not path.exists():
            raise RunDirectoryError(
                f"{self.path} is incomplete: {name} is missing; continue it with --resume, or restore the file"
            )
        return path


def find_runs(path: str | Path) -> list[RunDirectory]:
    """Find run directories.

    Args:
        path: A run directory, a folder of run directories, or a folder of such folders. An archive (`.tar.zst`) counts
            as the folder that it holds.

    Returns:
        The run directories, complete or not: those directly in the folder, then those one level below, each sorted.

    Raises:
        RunDirectoryError: If there is no such folder.

    Example:
        >>> from fedreuse import find_runs
        >>> [directory.path for directory in find_runs(".") if directory.is_complete]
        []
    """
    folder = Path(path)
    if RunDirectory(folder).file(_CONFIG).exists():
        return [RunDirectory(folder)]
    if not opened(folder).is_dir():
        packed = folder.with_name(f"{folder.name}{SUFFIX}")
        hint = f"name its archive {packed}" if packed.exists() else "name the `out` of a run or of a study"
        raise RunDirectoryError(f"{folder}: no such directory; {hint}")
    inner = folders_in(folder)
    candidates = [*inner, *(below for place in inner for below in folders_in(place))]
    return [run for run in map(RunDirectory, candidates) if run.file(_CONFIG).exists()]


def no_runs(*places: str | Path) -> RunDirectoryError:
    """Return the error of a command that needs runs and found none."""
    listed = ", ".join(map(str, places))
    return RunDirectoryError(
        f"{listed}: no run directory here, nor in the folders below; name the `out` of a run or of a study"
    )


def reference_to_plain(reference: Reference) -> dict[str, int]:
    """Return the reference as plain data, for the provenance."""
    return asdict(reference)


def _round_of(line: bytes) -> int:
    """Return the round of a line of metrics; 0 for a line that a crash cut."""
    try:
        return int(parse_json(line)["round"])
    except (ValueError, TypeError, LookupError):
        return 0
