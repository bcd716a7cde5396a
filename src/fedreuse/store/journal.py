"""Journal of a run in progress: state, ledger and metrics of each round in one SQLite transaction.

A crash at any moment leaves the last complete round, never half of one; a full disk rolls back and loses nothing.
Every entry has a digest, and the sums of the digests are stored with the round number, so that readers notice every
entry that was changed, added or removed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack

from fedreuse.accounting.columns import unfold
from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.files import beside
from fedreuse.core.formats import JOURNAL as FORMAT
from fedreuse.store.checksums import Checksums, digest_of_entry, sum_of

__all__ = ["Journal"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, text TEXT NOT NULL)",
    # the digest lies before the data, so that SQLite can read it without the pages of the data
    "CREATE TABLE IF NOT EXISTS blobs (place TEXT, key INTEGER, digest BLOB NOT NULL, data BLOB NOT NULL, "
    "PRIMARY KEY (place, key))",
    "CREATE TABLE IF NOT EXISTS rows (kind TEXT, round INTEGER, digest BLOB NOT NULL, data BLOB NOT NULL, "
    "PRIMARY KEY (kind, round))",
)
_ROWS_OF = "rows of "
_KEYS = {"blobs": ("place", "key"), "rows": ("kind", "round")}


class Journal:
    """A journal file with one writer, and readers that neither wait for it nor block it.

    Args:
        path: The file.
        is_reader: Open an existing file and change nothing; otherwise the file is created if absent.

    Raises:
        RunDirectoryError: The file is not a journal, or one of another version.
        RunError: The file could not be opened or written.
    """

    def __init__(self, path: Path, *, is_reader: bool = False) -> None:
        self._path, self._is_reader = path, is_reader
        try:
            address = f"{path.absolute().as_uri()}?mode={'ro' if is_reader else 'rwc'}"
            self._database = sqlite3.connect(address, uri=True, isolation_level=None, timeout=5)
            self._check_version()
            if not is_reader:
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute("PRAGMA synchronous=FULL")
                for statement in _TABLES:
                    self._database.execute(statement)
        except sqlite3.OperationalError as error:
            raise RunError(
                f"{path} could not be opened ({error}); if the disk is full, free some space, then continue with "
                "resume=True, or choose another `out`"
            ) from None
        except sqlite3.DatabaseError as error:
            raise RunDirectoryError(
                f"{path} is not a checkpoint of fedreuse ({error}); choose another `out`, or delete that directory"
            ) from None

    def _check_version(self) -> None:
        """Refuse a file of another version; write the version into a new file."""
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        is_new = not version and not self._database.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone()
        if not is_new:
            FORMAT.check(version, str(self._path))
        elif not self._is_reader:
            self._database.execute(f"PRAGMA user_version = {FORMAT.version}")

    def commit(
        self,
        round_number: int,
        rows: Mapping[str, list[dict[str, Any]] | dict[str, Any]],
        blobs: Mapping[tuple[str, int], bytes | None] | None = None,
        origin: str | None = None,
    ) -> None:
        """Commit one round, or several since the last checkpoint, all or nothing.

        Args:
            round_number: The last of these rounds.
            rows: New rows by kind: a list, or the form of `accounting.columns`.
            blobs: Changed entries of the state by place and key; None removes an entry.
            origin: Checksum of the run's provenance; stored once it is given.

        Raises:
            RunError: The commit failed, for example on a full disk; the journal is as before.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            sums = replace(self._checksums(), round_number=round_number)
            sums = sums if origin is None else replace(sums, origin=origin)
            for (place, key), data in (blobs or {}).items():
                sums = self._put("blobs", place, key, data, sums)
            for kind, entries in rows.items():
                sums = self._put("rows", kind, round_number, msgpack.packb(entries), sums)
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", ("checksums", sums.to_text()))
            self._database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self._roll_back()
            raise RunError(
                f"{self._path}: the checkpoint of round {round_number} could not be written ({error}); rounds up to "
                f"{self.round_number} are safe. Free some disk space, then continue with resume=True"
            ) from None
        except BaseException:
            self._roll_back()
            raise

    def _put(self, table: str, place: str, key: int, data: bytes | None, sums: Checksums) -> Checksums:
        """Write, replace or (None) remove one entry, and return the checksums afterwards."""
        first, second = _KEYS[table]
        digest = None if data is None else digest_of_entry(table, place, key, data)
        replaced = self._query(f"SELECT digest FROM {table} WHERE {first} = ? AND {second} = ?", place, key)
        if data is None:
            self._database.execute(f"DELETE FROM {table} WHERE {first} = ? AND {second} = ?", (place, key))
        else:
            self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", (place, key, digest, data))
        return sums.changed(_part(table, place), replaced[0][0] if replaced else None, digest)

    @property
    def round_number(self) -> int:
        """The last committed round; 0 before the first."""
        return self._checksums().round_number

    @property
    def origin(self) -> str:
        """The checksum of the run's provenance; empty before the first commit that names it."""
        return self._checksums().origin

    def blobs(self) -> dict[tuple[str, int], bytes]:
        """Return all entries of the state by place and key."""
        return {(place, key): data for place, key, data in self._entries("blobs")}

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Return all rows of a kind in the order of rounds."""
        packed = [data for _, _, data in self._entries("rows", kind)]
        try:
            entries = [msgpack.unpackb(data) for data in packed]
            return [row for entry in entries for row in (unfold(entry) if isinstance(entry, dict) else entry)]
        except (ValueError, TypeError, LookupError, AttributeError, msgpack.UnpackException) as error:
            raise self._damaged(f"rows of {kind}: {error}") from None

    def together(self, *kinds: str) -> list[list[dict[str, Any]]]:
        """Return all rows of several kinds as of one commit."""
        with self._snapshot():
            has_tables = self._query("SELECT name FROM sqlite_master WHERE name = 'rows'")
            return [self.rows(kind) if has_tables else [] for kind in kinds]

    def verify(self) -> None:
        """Compare every entry with its digest and every part with its sum.

        Raises:
            RunDirectoryError: Something differs.
        """
        for (result,) in self._query("PRAGMA integrity_check(1)"):
            if result != "ok":
                raise self._damaged(str(result))
        self._entries("blobs")
        kinds = {str(kind) for (kind,) in self._query("SELECT DISTINCT kind FROM rows")}
        # kinds without rows too: all rows of one may have been deleted
        for kind in kinds | {part.removeprefix(_ROWS_OF) for part in self._checksums().sums if part != "blobs"}:
            self.rows(kind)

    def _entries(self, table: str, place: str = "") -> list[tuple[str, int, bytes]]:
        """Return the entries of a table, or of one place in it, compared with their sum."""
        first, second = _KEYS[table]
        chosen = f"WHERE {first} = ?" if place else ""
        text = f"SELECT {first}, {second}, digest, data FROM {table} {chosen} ORDER BY {second}"
        with self._snapshot():
            entries, sums = self._query(text, *([place] if place else [])), self._checksums()
        self._compare(table, _part(table, place), entries, sums)
        return [(where, key, data) for where, key, _, data in entries]

    def _compare(self, table: str, part: str, entries: Sequence[tuple[Any, ...]], sums: Checksums) -> None:
        try:
            digests = [digest_of_entry(table, place, key, data) for place, key, _, data in entries]
        except TypeError:
            raise self._damaged(f"an entry of its {part} holds no bytes") from None
        if any(stored != digest for (*_, stored, _), digest in zip(entries, digests, strict=True)):
            raise self._damaged(f"an entry of its {part} does not have its digest")
        if sum_of(digests) != sums.sums.get(part, 0):
            raise self._damaged(f"its {part} are not those of round {sums.round_number}")

    def _checksums(self) -> Checksums:
        """Return the checksums of the last commit; empty ones before the first."""
        stored: dict[str, Any] = dict(self._query("SELECT name, text FROM meta"))
        try:
            return Checksums.from_text(stored["checksums"]) if stored else Checksums()
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise self._damaged(f"the number of its round: {error}") from None

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Let several queries see one state while another process may commit."""
        if self._database.in_transaction:
            yield
            return
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def _query(self, text: str, *values: str | int) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(text, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, why: str) -> RunDirectoryError:
        return RunDirectoryError(
            f"{self._path} is damaged: it is not a readable checkpoint ({why}); delete the run directory and start the "
            "run again, or restore the file from a copy"
        )

    def copy(self, path: Path) -> None:
        """Copy the journal as of its last commit to another file, whole or not at all.

        Raises:
            RunError: The copy could not be written.
        """
        path.parent.mkdir(exist_ok=True)
        partial = beside(path)
        partial.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(partial)) as target:
                self._database.backup(target)
            partial.replace(path)
        except (sqlite3.Error, OSError) as error:
            partial.unlink(missing_ok=True)
            raise RunError(
                f"{path} could not be written ({error}); rounds up to {self.round_number} are safe. Free some disk "
                "space, then continue with resume=True"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _part(table: str, place: str) -> str:
    """Return the name of the part that has its own sum: all blobs, or the rows of one kind."""
    return f"{_ROWS_OF}{place}" if table == "rows" else table
