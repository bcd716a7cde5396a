"""Fetching whole datasets from a server on loopback; no network."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.core.extras import MissingPackage
from fedreuse.learning.data import datasets
from fedreuse.learning.datasets import fetch as module
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.fetch import Checked, available, check, fetch, sources
from fedreuse.learning.datasets.sources import SOURCES, Source

Write = Callable[..., None]


@pytest.fixture
def tiny(tmp_path: Path, server: Any, shrink: Write, write_mnist: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny MNIST, written, pinned, and offered by the server alone."""
    shrink("mnist", train=20, test=10)
    write_mnist(tmp_path / "tiny", suffix=".gz")
    digest = datasets.parse({"name": "mnist", "path": str(tmp_path / "tiny")}, "task").load(None).digest
    FACTS["mnist"] = replace(FACTS["mnist"], digest=digest)  # `shrink` restores the entry
    server.files = {path.name: path.read_bytes() for path in sorted((tmp_path / "tiny").iterdir())}
    offered = {name: md5(content).hexdigest() for name, content in server.files.items()}
    monkeypatch.setitem(SOURCES, "mnist", Source(server.url, offered))
    monkeypatch.setattr(module, "_RETRIES", 0)
    return tmp_path / "tiny"


def test_a_dataset_arrives_whole(tiny: Path, home: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    assert fetch("mnist", progress=lambda *report: seen.append(report)) == home / "mnist"
    assert sorted({name for name, _, _ in seen}) == sorted(path.name for path in tiny.iterdir())
    assert all(done <= (total or done) for _, done, total in seen)
    assert [path.name for path in home.iterdir()] == ["mnist"]
    assert check("mnist").is_pinned


def test_an_interrupted_fetch_keeps_the_files_that_are_whole(server: Any, tiny: Path, home: Path) -> None:
    server.cut_after = [10**9, 10**9, 50]
    with pytest.raises(DataError, match=r"mnist: could not be fetched from .*; run the command again"):
        fetch("mnist")
    assert not available("mnist")
    assert not (home / "mnist").exists()
    asked = len(server.ranges)
    fetch("mnist")
    assert len(server.ranges) - asked == 2, "two files were whole"
    assert [path.name for path in home.iterdir()] == ["mnist"]


def test_a_busy_server_is_asked_again(server: Any, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRIES", 1)
    monkeypatch.setattr("time.sleep", lambda _: None)
    server.statuses = [503]
    fetch("mnist")
    assert available("mnist")


def test_an_absent_file_and_no_server(server: Any, tiny: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files = {}
    with pytest.raises(DataError, match="404"):
        fetch("mnist")
    monkeypatch.setitem(SOURCES, "mnist", Source("http://127.0.0.1:9", SOURCES["mnist"].files))
    with pytest.raises(DataError, match=r"could not be fetched from http://127\.0\.0\.1:9"):
        fetch("mnist")
    assert list(home.iterdir()) == []


def test_a_wrong_checksum_is_refused_and_nothing_stays(server: Any, tiny: Path, home: Path) -> None:
    server.files = dict.fromkeys(server.files, b"something else")
    with pytest.raises(DataError, match="does not match the known hash: expected md5:"):
        fetch("mnist")
    assert list(home.iterdir()) == []


def test_a_wrong_digest_is_never_put_in_place(tiny: Path, home: Path) -> None:
    FACTS["mnist"] = replace(FACTS["mnist"], digest="0" * 64)
    with pytest.raises(DataError, match=r"SHA-256 .*, expected 0000"):
        fetch("mnist")
    assert not (home / "mnist").exists()


def test_a_good_copy_is_kept(server: Any, tiny: Path, home: Path) -> None:
    fetch("mnist")
    before, asked = (home / "mnist").stat().st_ino, len(server.ranges)
    assert fetch("mnist") == home / "mnist"
    assert ((home / "mnist").stat().st_ino, len(server.ranges)) == (before, asked)


def test_a_damaged_copy_is_put_aside(tiny: Path, home: Path) -> None:
    fetch("mnist")
    (home / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(b"damaged")
    fetch("mnist")
    assert sorted(path.name for path in home.iterdir()) == ["mnist", "mnist.replaced-1"]
    assert (home / "mnist.replaced-1" / "train-labels-idx1-ubyte.gz").read_bytes() == b"damaged"
    check("mnist")


def test_one_fetch_at_a_time(tiny: Path, home: Path) -> None:
    (home / ".fetch-mnist").mkdir()
    with (home / ".fetch-mnist" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DataError, match=r"another fetch into .* is running"):
            fetch("mnist")
    fetch("mnist")


def test_without_pooch(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingPackage, match=r"pooch.*fedreuse\[sim\]"):
        fetch("mnist")


def test_check_says_what_is_there(tiny: Path) -> None:
    fetch("mnist")
    digest = FACTS["mnist"].digest
    assert digest is not None
    found = check("mnist")
    assert replace(found, array_digests=()) == Checked("mnist", {"train": 20, "test": 10}, 10, digest, is_pinned=True)
    assert len(set(found.array_digests)) == 4
    assert not check("synthetic").is_pinned


def test_datasets_without_files() -> None:
    assert available("digits")
    assert available("synthetic")
    assert sources("synthetic") == ["is generated"]
    with pytest.raises(ConfigError, match="digits: nothing to fetch, it comes with scikit-learn"):
        fetch("digits")


def test_sources_are_addresses() -> None:
    assert sources("mnist") == ["https://ossci-datasets.s3.amazonaws.com/mnist (4 files)"]
    assert sources("cifar10") == ["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"]


@pytest.mark.parametrize("call", [fetch, check, available, sources])
def test_an_unknown_name(call: Callable[[str], Any]) -> None:
    with pytest.raises(ConfigError, match="did you mean 'mnist'"):
        call("mnits")
