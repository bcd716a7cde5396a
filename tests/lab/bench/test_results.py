"""Results survive their file, with provenance; anything else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.bench.results import made_now, read, read_folder


def test_results_come_back_as_they_were_written(tmp_path: Path) -> None:
    results = made_now("engine", {"rounds": 2}, [{"contender": "a", "seconds": [1.0, 2.0]}])
    path = results.write(tmp_path / "deep" / "engine.json")
    assert read(path) == results
    assert results.provenance["packages"]["torch"]
    assert read_folder(path.parent) == {"engine": results}
    assert [file.name for file in path.parent.iterdir()] == ["engine.json"]


@pytest.mark.parametrize("text", ["", "[]", '{"bench": "engine"}', '{"unknown": 1}'])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RunDirectoryError, match="holds no results"):
        read(tmp_path / "x.json")


def test_what_another_command_stored_beside_them_is_passed_over(tmp_path: Path) -> None:
    results = made_now("engine", {"rounds": 2}, [{"contender": "a", "seconds": [1.0]}])
    results.write(tmp_path / "engine.json")
    (tmp_path / "study.json").write_text('{"study": "robust"}')
    assert read_folder(tmp_path) == {"engine": results}
    (tmp_path / "torn.json").write_text('{"bench": "eng')
    with pytest.raises(RunDirectoryError, match=r"torn\.json holds no results"):
        read_folder(tmp_path)
