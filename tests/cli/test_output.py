"""How things are shown: nothing is cut off, nothing is taken for markup, JSON is JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.cli.output import (
    command_line,
    console,
    counted,
    program,
    show_json,
    show_lines,
    show_pairs,
    show_prose,
    show_table,
)
from fedreuse.report.tables import Table


def test_a_table_fits_a_hundred_columns_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    long = "a name that is far too long for a column and therefore folds onto several lines"
    show_table(Table("title", ("what", "score", "saving"), ((long, "98.50 ± 0.10", "-1.25 %"),), "legend"))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    for word in [*long.split(), "98.50 ± 0.10", "-1.25 %", "title", "legend"]:
        assert word in shown


def test_columns_decides_the_width_of_what_is_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert console().width == 40
    cells = tuple(f"{number}.59 ± 0.00" for number in range(90, 95))
    show_table(Table("", ("a", "b", "c", "d", "e"), (cells,)))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 40
    assert all(f"{number}.59 ± 0.00" in shown for number in range(90, 95))
    for nonsense in ("", "wide", "0"):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert console().width == 100


def test_a_command_can_be_copied_whatever_stands_in_a_path() -> None:
    assert command_line("show", Path("a b"), "x=$y") == "fedreuse show 'a b' 'x=$y'"


def test_one_is_not_many() -> None:
    assert [counted(number, "round") for number in (0, 1, 2, 1000)] == [
        "0 rounds",
        "1 round",
        "2 rounds",
        "1,000 rounds",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["show_lines('x' * 99)", "show_json(['x' * 99])", "say('x' * 99)"])
def test_when_nobody_reads_any_more_the_program_ends_quietly(call: str) -> None:
    script = f"from fedreuse.cli.output import say, show_json, show_lines\nwhile True:\n    {call}\n"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


def test_numbers_stand_to_the_right_and_words_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(Table("", ("name", "B"), (("a", "1"), ("bcd", "1,000"))))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.strip(" ─")] == [" name      B", " a         1", " bcd   1,000"]


def test_brackets_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(Table("", ("a",), (("[red]x[/red]",),)))
    show_pairs("[bold]t", [("k", "[i]v")])
    show_lines("[b]z")
    shown = capsys.readouterr().out
    for text in ("[red]x[/red]", "[bold]t", "[i]v", "[b]z"):
        assert text in shown


def test_json_is_json_and_never_nan(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"a": [1.5, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None]}
    with pytest.raises(ValueError, match="JSON"):
        show_json(float("nan"))


def test_the_program_is_named_as_it_can_be_typed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv/bin/fedreuse")])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert program() == ".venv/bin/fedreuse"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert program() == "fedreuse"


def test_arguments_become_options() -> None:
    from fedreuse.cli.output import command_words

    told = "x holds an unfinished run; go on with resume=True, or choose another `out`"
    assert command_words(told) == "x holds an unfinished run; go on with --resume, or choose another --out"


def test_prose_is_folded_between_words_and_long_words_stay_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    show_prose("What is left out is added to the next update.", "", "runs/a-name-longer-than-the-terminal is kept")
    assert capsys.readouterr().out.splitlines() == [
        "What is left out is",
        "added to the next",
        "update.",
        "",
        "runs/a-name-longer-than-the-terminal",
        "is kept",
    ]
