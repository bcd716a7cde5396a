"""The answer that commands print first."""

from __future__ import annotations

import pytest

from fedreuse.cli.answer import show_answer
from fedreuse.report.results import read_run
from tests.report.runs import write_run


def test_sentences_come_before_the_table(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    show_answer([read_run(write_run(tmp_path / "run", test_score=0.9))])
    shown = capsys.readouterr().out
    assert "2.1 times less" in " ".join(shown.split())
    assert shown.index("less") < shown.index("saved")


def test_nothing_is_said_without_a_complete_run(capsys: pytest.CaptureFixture[str]) -> None:
    show_answer([])
    assert capsys.readouterr().out == ""
