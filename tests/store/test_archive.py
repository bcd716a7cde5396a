"""Archives of results: deterministic, read like the folder, and refused where damaged or unsafe."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import zstandard

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store import archive
from fedreuse.store.archive import SUFFIX, folders_in, is_archive, name_of, opened, pack

Members = list[tarfile.TarInfo | tuple[str, bytes]]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "source" / "study"
    for name in ("run-a/config.yaml", "run-a/ledger.parquet", "run-b/config.yaml", "study.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"content of {name}" * 100)
    return folder


@pytest.fixture
def packed(study: Path, tmp_path: Path) -> Path:
    pack(study, tmp_path / f"study{SUFFIX}", "study")
    return tmp_path / f"study{SUFFIX}"


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_an_archive_holds_the_folder(study: Path, packed: Path) -> None:
    assert files(opened(packed)) == files(study)
    assert opened(packed / "run-a" / "config.yaml").read_bytes() == (study / "run-a" / "config.yaml").read_bytes()
    assert not opened(packed / "run-c").exists()


def test_the_bytes_depend_on_names_and_contents_alone(study: Path, packed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for file in sorted(study.rglob("*"), reverse=True):
        if file.is_file():
            (copy / file.relative_to(study)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy / file.relative_to(study))
    os.utime(copy / "study.json", (1, 1))
    (copy / "study.json").chmod(0o600)
    size = pack(copy, tmp_path / f"again{SUFFIX}", "study")
    assert (tmp_path / f"again{SUFFIX}").read_bytes() == packed.read_bytes()
    assert size == packed.stat().st_size


def test_it_is_unpacked_once_for_this_user_alone_and_removed_at_the_end(packed: Path) -> None:
    folder = opened(packed)
    assert opened(packed) == folder == opened(packed.parent / "." / packed.name)
    home = folder.parents[1]
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    code = f"from fedreuse.store.archive import opened; print(opened({str(packed)!r}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert shown != str(folder)
    assert not Path(shown).parents[1].exists()


def test_a_changed_archive_is_unpacked_again(study: Path, packed: Path) -> None:
    before = opened(packed)
    (study / "study.json").write_text("other")
    pack(study, packed, "study")
    assert opened(packed) != before
    assert opened(packed / "study.json").read_text() == "other"
    assert opened(packed / "study.json").stat().st_mtime_ns == packed.stat().st_mtime_ns


def test_a_lost_copy_is_made_again(packed: Path) -> None:
    shutil.rmtree(opened(packed).parents[1])
    assert opened(packed / "study.json").exists()


def test_other_paths_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / f"a folder{SUFFIX}"
    folder.mkdir()
    for path in (tmp_path / "absent", folder / "file", tmp_path / f"absent{SUFFIX}" / "run"):
        assert opened(path) == path


def test_folders_and_archives_are_listed_alike(packed: Path) -> None:
    assert is_archive(packed)
    assert folders_in(packed.parent) == [packed.parent / "source", packed]
    assert folders_in(packed) == [packed / "run-a", packed / "run-b"]
    assert folders_in(packed / "study.json") == []
    assert (name_of(packed), name_of(packed.parent / "source")) == ("study", "source")


def test_links_are_not_packed(study: Path, tmp_path: Path) -> None:
    (study / "link").symlink_to("/etc/passwd")
    with pytest.raises(RunDirectoryError, match="link is neither a file nor a folder"):
        pack(study, tmp_path / f"other{SUFFIX}", "study")


def written(path: Path, members: Members) -> Path:
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, BytesIO(member[1]))
    path.write_bytes(zstandard.compress(content.getvalue()))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


BAD: dict[str, tuple[Members, str]] = {
    "absolute": ([("/x", b"x")], "not the name of a file"),
    "above": ([("study/../../x", b"x")], "not the name of a file"),
    "symbolic link": ([special("study/x", tarfile.SYMTYPE, "/etc/passwd")], "neither a file nor a folder"),
    "hard link": ([("study/y", b"y"), special("study/x", tarfile.LNKTYPE, "study/y")], "neither a file nor a folder"),
    "device": ([special("study/x", tarfile.CHRTYPE)], "neither a file nor a folder"),
    "pipe": ([special("study/x", tarfile.FIFOTYPE)], "neither a file nor a folder"),
    "twice": ([("study/x", b"x"), ("study/x", b"y")], "study/x is in it twice"),
    "a file as a folder": ([("study/x", b"x"), ("study/x/y", b"y")], "could not be unpacked"),
    "two folders": ([("study/x", b"x"), ("other/x", b"x")], "must hold one folder, and holds other, study"),
    "a file alone": ([("study", b"x")], "must hold one folder"),
    "nothing": ([], "must hold one folder, and holds nothing"),
}


@pytest.mark.parametrize("what", BAD)
def test_members_that_are_not_allowed_are_refused_and_leave_nothing(tmp_path: Path, what: str) -> None:
    members, words = BAD[what]
    bad = written(tmp_path / f"bad{SUFFIX}", members)
    with pytest.raises(RunDirectoryError, match=f"bad{SUFFIX}.*{words}"):
        opened(bad)
    home = archive._home
    assert home is not None
    assert not [path for path in home.iterdir() if path.name.startswith("tmp")]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "text": lambda _: b"not an archive",
    "cut": lambda data: data[: len(data) // 2],
    "the last byte": lambda data: data[:-5],
    "flipped": lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
    "more behind it": lambda data: data + b"more",
    "compressed text": lambda _: zstandard.compress(b"text" * 1000),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_an_error_that_names_the_archive(packed: Path, what: str) -> None:
    packed.write_bytes(DAMAGE[what](packed.read_bytes()))
    with pytest.raises(RunDirectoryError, match=f"study{SUFFIX} is not an archive of results, or is damaged"):
        opened(packed)


def test_bounds_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = written(tmp_path / f"large{SUFFIX}", [(f"large/{number}", bytes(2000)) for number in range(4)])
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(RunDirectoryError, match="more than 3 members"):
        opened(packed)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 4)
    monkeypatch.setattr(archive, "MAX_BYTES", 5000)
    with pytest.raises(RunDirectoryError, match="more than 5,000 bytes"):
        opened(packed)


def test_archives_of_tar_are_read(study: Path, tmp_path: Path) -> None:
    foreign = tmp_path / f"foreign{SUFFIX}"
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(study, "study")
    foreign.write_bytes(zstandard.ZstdCompressor(write_content_size=False).compress(content.getvalue()))
    assert files(opened(foreign)) == files(study)
