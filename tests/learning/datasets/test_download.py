"""Retry, resume and checksum against a real server on loopback."""

from __future__ import annotations

from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.download import Remote, RetryPolicy, download

CONTENT = bytes(range(256)) * 4000  # 1,024,000 bytes: several chunks
SOON = RetryPolicy(timeout_seconds=5, tries=3, pause_seconds=0.001)


def remote(server: Any, content: bytes = CONTENT) -> Remote:
    server.files["data.bin"] = content
    return Remote(f"{server.url}/data.bin", f"md5:{md5(CONTENT).hexdigest()}")


def get(wanted: Remote, folder: Path, seen: list[tuple[str, int, int | None]] | None = None) -> Path:
    seen = [] if seen is None else seen
    return download(wanted, folder, lambda *report: seen.append(report), SOON)


def test_a_file_arrives_with_progress(server: Any, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    path = get(remote(server), tmp_path, seen)
    assert path == tmp_path / "data.bin"
    assert path.read_bytes() == CONTENT
    assert not (tmp_path / "data.bin.part").exists()
    assert seen[-1] == ("data.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_cut_connection_is_continued_where_it_ended(server: Any, tmp_path: Path) -> None:
    server.cut_after = [300_000, 300_000]
    assert get(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=600000-"]


def test_an_earlier_part_is_continued(server: Any, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    assert get(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_server_without_ranges_starts_again(server: Any, tmp_path: Path) -> None:
    server.knows_range = False
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    assert get(remote(server), tmp_path).read_bytes() == CONTENT


def test_a_part_of_another_file_is_thrown_away(server: Any, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1000)
    assert get(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-", None]


@pytest.mark.parametrize("surplus", [b"", b"more"])
def test_a_part_as_long_as_the_file_is_judged_by_its_checksum(server: Any, tmp_path: Path, surplus: bytes) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT + surplus)
    assert get(remote(server), tmp_path).read_bytes() == CONTENT


def test_a_file_that_is_there_is_not_asked_for(server: Any, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)
    get(remote(server), tmp_path)
    assert server.ranges == []


def test_a_wrong_checksum_is_refused_and_nothing_stays(server: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.bin: checksum md5:.*, expected md5:"):
        get(remote(server, b"something else"), tmp_path)
    assert list(tmp_path.glob("data*")) == []


def test_sha256_is_understood(server: Any, tmp_path: Path) -> None:
    wanted = Remote(remote(server).url, f"sha256:{sha256(CONTENT).hexdigest()}")
    assert get(wanted, tmp_path).exists()


def test_a_busy_server_is_asked_again(server: Any, tmp_path: Path) -> None:
    server.statuses = [503, 429]
    assert get(remote(server), tmp_path).read_bytes() == CONTENT


def test_patience_ends(server: Any, tmp_path: Path) -> None:
    server.statuses = [503] * 3
    with pytest.raises(DataError, match=r"503.*3 tries without a new byte"):
        get(remote(server), tmp_path)


def test_patience_is_restored_by_every_new_byte(server: Any, tmp_path: Path) -> None:
    server.cut_after = [1000] * 8  # more interruptions than tries
    assert get(remote(server), tmp_path).read_bytes() == CONTENT


def test_an_absent_file_is_not_asked_for_twice(server: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the server answers 404"):
        get(Remote(f"{server.url}/other.bin", "md5:0"), tmp_path)
    assert len(server.ranges) == 1


def test_no_server_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 tries without a new byte"):
        get(Remote("http://127.0.0.1:9/data.bin", "md5:0"), tmp_path)


def test_the_name_leaves_the_query_out() -> None:
    assert Remote("https://example.org/a/b.npz?download=1", "md5:0").name == "b.npz"
