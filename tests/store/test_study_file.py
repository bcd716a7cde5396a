"""The list of a study's runs: read, or refused with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.study_file import read_study


def test_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text('{"study": "a", "runs": [{"folder": "x", "variant": "y"}]}')
    assert read_study(tmp_path)["runs"][0]["folder"] == "x"


@pytest.mark.parametrize("content", [None, "", "[]", '{"runs": 3}', '{"runs": [3]}', '{"runs": [{"folder": "x"}]}'])
def test_anything_else_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "study.json").write_text(content)
    with pytest.raises(
        RunDirectoryError, match=r"study\.json is not the list of a study's runs \(.*\); delete it, and"
    ):
        read_study(tmp_path)
