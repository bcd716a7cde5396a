"""Whose error it is: a file that a configuration names, or its neighbours; never ours, never a library's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fedreuse.core import own_code
from fedreuse.core.own_code import own_code_error, remember


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(own_code, "_OWN", set())
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("theirs", "neighbour"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "neighbour.py").write_text("def fail():\n    return {}['absent']\n")
    (tmp_path / "theirs.py").write_text(
        "import json\nfrom neighbour import fail\n\ndef parse():\n    return json.loads('{')\n"
    )
    return tmp_path


def caught(call) -> BaseException:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever it is
        call()
    return raised.value


def test_an_error_in_their_file_has_its_line(module: Path) -> None:
    import theirs

    remember("theirs")
    told = own_code_error(caught(theirs.fail))
    assert str(told) == f"{module / 'neighbour.py'}, line 2, in fail (`return {{}}['absent']`): KeyError: 'absent'"


def test_an_error_in_a_library_that_they_called_is_theirs(module: Path) -> None:
    import theirs

    remember("theirs")
    assert f"{module / 'theirs.py'}, line 5, in parse" in str(own_code_error(caught(theirs.parse)))


def test_their_file_is_told_also_where_a_configuration_names_the_library(module: Path) -> None:
    import theirs

    remember("json")
    assert "json" in str(own_code_error(caught(lambda: json.loads("{"))))
    remember("theirs")
    assert f"{module / 'theirs.py'}, line 5, in parse" in str(own_code_error(caught(theirs.parse)))


def test_without_a_configuration_that_names_them_nothing_is_theirs(module: Path) -> None:
    import theirs

    assert own_code_error(caught(theirs.fail)) is None


def test_ours_and_libraries_are_not_theirs(module: Path) -> None:
    remember("theirs")
    assert own_code_error(caught(lambda: json.loads("{"))) is None


def test_a_file_that_is_not_python(module: Path) -> None:
    (module / "broken.py").write_text("def broken(:\n")
    remember("broken")
    error = caught(lambda: __import__("broken"))
    assert str(own_code_error(error)).startswith(f"{module / 'broken.py'}, line 1: SyntaxError")


def test_a_module_without_a_file_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_code, "_OWN", set())
    for name in ("__main__", "no_such_module", "sys"):
        remember(name)
    assert all(place.exists() for place in own_code._OWN)
