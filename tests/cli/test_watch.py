"""`fedreuse watch`: lines where there is no terminal, a view of 80 columns, and runs that another process writes."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fedreuse.cli.watch import draw, line_of, sparkline, standings
from fedreuse.store.standing import Standing
from tests.cli.conftest import Invoke
from tests.report.planned import write_planned

ONE = Standing("running", "accuracy", 12, 30, [0.1, 0.5, 0.9], 3_600_000, 4_800_000, 3, 1, 60.0, (1, 2, 10))


def test_a_line(invoke: Invoke) -> None:
    assert line_of(ONE) == (
        "running, round 12/30, validation accuracy 90.00 %, 3.60 MB (25.0% saved), 3 lost, 1 refused, 1 min 30 s left"
    )
    assert line_of(Standing("running", "accuracy", 0, 30)) == "running, round 0/30, 0.00 MB, 0 lost, 0 refused, ? left"


def test_bars_go_from_the_lowest_to_the_highest() -> None:
    assert sparkline([0.1, 0.5, 0.9]) == "▁▅█"
    assert sparkline([0.5]) == "▁"
    assert sparkline([]) == ""
    assert len(sparkline([one / 100 for one in range(100)])) == 10


def test_the_view_fits_80_columns_with_many_runs_and_long_names() -> None:
    found = {f"a variant with a rather long name, number {number}, seed 101": ONE for number in range(3)}
    place = Console(width=80, record=True, file=StringIO())
    place.print(draw({**found, "done": Standing("complete", "accuracy", 30, 30, [0.2])}))
    lines = place.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split("12/30")[1].split() == ["90.00%", "▁▅█", "3.60", "25%", "3(1)", "1", "min", "30", "s"]
    assert sum("1, 2, 10" in line for line in lines) == 3, "who is training, for each that goes on"
    assert "complete" in "\n".join(lines)


def test_what_is_over_is_told_once_and_the_command_ends(invoke: Invoke, complete: Path) -> None:
    done = invoke("watch", complete)
    assert done.exit_code == 0, done.output
    (line,) = done.stdout.splitlines()
    assert line.startswith("run: complete, round 2/2, validation accuracy")
    assert "0 lost, 0 refused" in line


@pytest.mark.slow
def test_an_interrupted_run_at_this_moment(invoke: Invoke, incomplete: Path) -> None:
    (incomplete / "LOCK").write_text("999999999")
    done = invoke("watch", incomplete, "--once")
    assert done.exit_code == 0
    assert "interrupted, round 1/2" in done.stdout
    (told,) = json.loads(invoke("watch", incomplete, "--json").stdout)
    assert (told["run"], told["state"], told["rounds"]) == ("incomplete", "interrupted", 1)


@pytest.mark.slow
def test_runs_of_a_study_bear_the_names_it_gave_them(tmp_path: Path) -> None:
    assert list(standings([write_planned(tmp_path)]))[:2] == ["s401 A", "s402 A"]


def test_nothing_there_is_a_mistake(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("watch", tmp_path / "nowhere")
    assert done.exit_code == 2
    assert "no such directory" in done.stderr


@pytest.mark.slow
def test_a_run_is_followed_to_its_end(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    """The run itself goes on between two looks: each look finds one round more."""
    from fedreuse import load, run
    from fedreuse.cli import watch as module
    from fedreuse.runs.listeners import Listener, RoundDone

    seen: list[str] = []

    class Looking(Listener):
        def round_done(self, event: RoundDone) -> None:
            (one,) = module.standings([tmp_path / "run"]).values()
            seen.append(f"{one.state} {one.rounds} {len(one.now)}")

    run(load(tiny), tmp_path / "run", listeners=[Looking()])
    # a round is safe, and told, before its listeners hear of it; the cohort is that of the next round
    assert seen == ["running 1 3", "running 2 0"]
    assert "complete, round 2/2" in invoke("watch", tmp_path).stdout
