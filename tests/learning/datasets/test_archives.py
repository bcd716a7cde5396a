"""Only the wanted files come out, and only where they belong."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.archives import take_out

MEMBERS = {"deep/down/a.bin": b"a", "../../b.bin": b"b", "deep/other.sh": b"no"}
WANTED = frozenset({"a.bin", "b.bin"})


def write_archive(path: Path) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in MEMBERS.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, "w:gz") as tar:
        for name, content in MEMBERS.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("c/a.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return path


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tgz"])
def test_the_wanted_files_come_out_flat(tmp_path: Path, name: str) -> None:
    ready = tmp_path / "one" / "ready"
    ready.mkdir(parents=True)
    take_out(write_archive(tmp_path / name), WANTED, ready)
    assert {path.name: path.read_bytes() for path in ready.iterdir()} == {"a.bin": b"a", "b.bin": b"b"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["home", "one", name])


def test_a_wanted_file_itself_is_copied(tmp_path: Path) -> None:
    (tmp_path / "ready").mkdir()
    (tmp_path / "a.bin").write_bytes(b"a")
    take_out(tmp_path / "a.bin", WANTED, tmp_path / "ready")
    assert (tmp_path / "ready" / "a.bin").read_bytes() == b"a"


@pytest.mark.parametrize("name", ["x.zip", "x.tgz"])
def test_a_truncated_archive(tmp_path: Path, name: str) -> None:
    path = write_archive(tmp_path / name)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=f"{name}: not a readable archive"):
        take_out(path, WANTED, tmp_path)
