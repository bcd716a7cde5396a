"""Stored names stay below their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.names import inside, relative_name

OUTSIDE = ["", "/etc/passwd", "..", "../other", "a/../../b", "a//b", "./a", "a/", "a\\b", "a\0b", 3, None]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_may_leave_the_folder_are_refused(name: object) -> None:
    with pytest.raises(RunDirectoryError, match="not the name of a file in its folder"):
        relative_name(name)


def test_names_below_the_folder_are_joined(tmp_path: Path) -> None:
    assert inside(tmp_path, "models/best..safetensors") == tmp_path / "models" / "best..safetensors"


def test_links_are_refused_at_every_step(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").symlink_to(tmp_path / "secret")
    (folder / "away").symlink_to(tmp_path)
    for name in ("file", "away/secret"):
        with pytest.raises(RunDirectoryError, match="symbolic link"):
            inside(folder, name)


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert inside(tmp_path / "link", "file") == tmp_path / "link" / "file"
