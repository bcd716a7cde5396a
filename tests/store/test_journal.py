"""The journal: all of a round or nothing, whatever happens on the way."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.store.journal import Journal

ROWS = {"metrics": [{"round": 1, "score": 0.5, "none": None}], "ledger": [{"a": 1, "b": {"x:y": 2}}, {"a": 2}]}


def fill(journal: Journal, num_rounds: int) -> None:
    for number in range(1, num_rounds + 1):
        journal.commit(number, {"metrics": [{"round": number}]}, {("server", 0): b"%d" % number})


def test_a_new_journal_is_empty(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    assert journal.round_number == 0
    assert journal.blobs() == {}
    assert journal.rows("metrics") == []


def test_what_is_committed_is_there_for_the_next_process(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.commit(1, ROWS, {("server", 0): b"state", ("clients", 7): b"\x00\xff"})
    journal.close()
    again = Journal(tmp_path / "j.sqlite")
    assert again.round_number == 1
    assert again.rows("metrics") == ROWS["metrics"]
    assert again.rows("ledger") == ROWS["ledger"]
    assert again.rows("nothing") == []
    assert again.blobs() == {("server", 0): b"state", ("clients", 7): b"\x00\xff"}


def test_blobs_are_replaced_kept_and_deleted(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.commit(1, {}, {("a", 1): b"one", ("a", 2): b"two", ("b", 1): b"three"})
    journal.commit(2, {}, {("a", 1): b"new", ("a", 2): None, ("c", 9): None})
    assert journal.blobs() == {("a", 1): b"new", ("b", 1): b"three"}


def test_rows_come_in_the_order_of_rounds(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    for number in (2, 10, 11):
        journal.commit(number, {"metrics": [{"round": number}, {"more": number}]})
    assert [row for row in journal.rows("metrics") if "round" in row] == [{"round": 2}, {"round": 10}, {"round": 11}]
    assert journal.rows("metrics")[1] == {"more": 2}


def test_a_round_written_twice_counts_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.commit(1, {"metrics": [{"round": 1}]})
    journal.commit(1, {"metrics": [{"round": 1}]})
    assert journal.rows("metrics") == [{"round": 1}]


def test_a_reader_sees_whole_rounds_while_somebody_writes(tmp_path: Path) -> None:
    writer, reader = Journal(tmp_path / "j.sqlite"), Journal(tmp_path / "j.sqlite")
    fill(writer, 2)
    assert reader.round_number == 2
    writer._database.execute("BEGIN IMMEDIATE")
    writer._database.execute("DELETE FROM rows")
    assert (reader.round_number, len(reader.rows("metrics"))) == (2, 2)
    writer._database.execute("ROLLBACK")
    fill(writer, 3)
    assert (reader.round_number, len(reader.rows("metrics"))) == (3, 3)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    fill(journal, 3)
    pages = journal._database.execute("PRAGMA page_count").fetchone()[0]
    journal._database.execute(f"PRAGMA max_page_count = {pages + 2}")  # as if the disk were full
    large = {("server", 0): b"4", ("clients", 1): bytes(100_000)}
    with pytest.raises(RunError) as caught:
        journal.commit(4, {"metrics": [{"round": 4}]}, large)
    message = str(caught.value)
    assert "j.sqlite: the checkpoint of round 4 could not be written" in message
    assert "full" in message
    assert "rounds up to 3 are safe" in message
    assert "Free some disk space, then continue with resume=True" in message
    assert journal.round_number == 3
    assert journal.blobs() == {("server", 0): b"3"}
    assert journal.rows("metrics") == [{"round": 1}, {"round": 2}, {"round": 3}]
    journal._database.execute("PRAGMA max_page_count = 100000")
    journal.commit(4, {"metrics": [{"round": 4}]}, large)
    assert journal.round_number == 4
    assert journal.blobs()["clients", 1] == bytes(100_000)


def test_a_round_that_fails_half_way_leaves_no_trace(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    fill(journal, 1)
    with pytest.raises(TypeError):
        journal.commit(2, {"metrics": [{"round": object()}]}, {("server", 0): b"2"})  # no such row can be stored
    journal.close()
    again = Journal(tmp_path / "j.sqlite")
    assert again.round_number == 1
    assert again.blobs() == {("server", 0): b"1"}


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"PK\x03\x04" + bytes(5000)])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j.sqlite"
    path.write_bytes(content)
    with pytest.raises(
        RunDirectoryError, match=r"j\.sqlite is not a checkpoint of fedreuse \(.*\); choose another `out`, or"
    ):
        Journal(path)


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j.sqlite").mkdir()
    with pytest.raises(RunError, match=r"j\.sqlite could not be opened \(.*\); if the disk is full, free some space"):
        Journal(tmp_path / "j.sqlite")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "j.sqlite")
    database.execute("CREATE TABLE meta (other INTEGER)")
    database.commit()
    database.close()
    with pytest.raises(RunDirectoryError, match=r"j\.sqlite is written as journal version 0"):
        assert Journal(tmp_path / "j.sqlite").round_number == 0


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)
    fill(journal, 5)
    journal.commit(6, {"metrics": [{"round": 6}]}, {("clients", number): bytes(3000) for number in range(40)})
    journal.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xaa" * (len(data) - 4096)  # the first page says what is where; the rest is gone
    path.write_bytes(data)
    with pytest.raises(RunDirectoryError, match=r"j\.sqlite"):
        read_all(path)


def test_a_truncated_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)
    journal.commit(1, {"metrics": [{"round": 1}]}, {("clients", number): bytes(3000) for number in range(40)})
    journal.close()
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(RunDirectoryError, match=r"j\.sqlite"):
        read_all(path)


def read_all(path: Path) -> None:
    journal = Journal(path)
    try:
        assert journal.round_number
        journal.blobs()
        journal.rows("metrics")
    finally:
        journal.close()


DAMAGE = {
    "a row": "UPDATE rows SET data = X'9181a5726f756e6409' WHERE kind = 'metrics' AND round = 2",
    "a row and its digest": "UPDATE rows SET data = (SELECT data FROM rows WHERE kind = 'metrics' AND round = 1), "
    "digest = (SELECT digest FROM rows WHERE kind = 'metrics' AND round = 1) WHERE kind = 'metrics' AND round = 2",
    "the round of a row": "UPDATE rows SET round = 7 WHERE round = 2",
    "the kind of a row": "UPDATE rows SET kind = 'metrids' WHERE round = 2",
    "a row that is gone": "DELETE FROM rows WHERE round = 2",
    "every row": "DELETE FROM rows",
    "a blob": "UPDATE blobs SET data = X'00' WHERE key = 0",
    "a blob that is no bytes": "UPDATE blobs SET data = 7 WHERE key = 0",
    "the key of a blob": "UPDATE blobs SET key = 5 WHERE key = 0",
    "a blob that is gone": "DELETE FROM blobs WHERE key = 0",
    "a digest": "UPDATE blobs SET digest = X'00' WHERE key = 0",
    "the round": """UPDATE meta SET text = replace(text, '"round": 3', '"round": 2')""",
    "what is noted of the commit": "DELETE FROM meta",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_whatever_is_changed_is_noticed(tmp_path: Path, what: str) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)
    fill(journal, 3)
    journal.verify()
    journal.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(DAMAGE[what])
    again = Journal(path)
    with pytest.raises(RunDirectoryError, match=r"j\.sqlite is damaged: .*; delete the run directory and start"):
        again.verify()
    again.close()


def test_its_origin_is_kept_once_it_is_given(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    assert journal.origin == ""
    journal.commit(1, {}, origin="abc")
    journal.commit(2, ROWS)
    assert (journal.origin, journal.round_number) == ("abc", 2)
