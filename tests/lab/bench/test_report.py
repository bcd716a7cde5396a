"""A document's marked places are filled from results, and nothing else of it changes."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.lab.bench.report import HOMES, fill, section, tables_of
from fedreuse.lab.bench.results import Results

ROWS = [{"contender": "bare loop, 1 process", "seconds": [1.0], "cpu_seconds": [1.0]}]
RESULTS = Results(
    "engine", {"cores": 2}, ROWS, {"command": ["fedreuse", "lab", "bench", "engine"], "cpu": {"model": "X"}}, "now"
)


def test_only_marked_places_change() -> None:
    mark, end = "<!-- bench engine -->", "<!-- end of bench -->"
    other = f"<!-- bench codecs -->\nkept\n{end}"
    text, filled = fill(f"a\n{mark}\nold\n{end}\nb\n{other}\n", {"engine": RESULTS})
    assert filled == ["engine"]
    assert text.startswith(f"a\n{mark}\n`fedreuse lab bench engine`, now, 2 cores of X")
    assert "old" not in text
    assert text.endswith(f"{end}\nb\n{other}\n")
    assert fill(text, {"engine": RESULTS})[0] == text  # filling twice is filling once


def test_a_section_names_its_command() -> None:
    assert "| bare loop, 1 process | 1.00 | 1.00 | - |" in section(RESULTS)


def test_an_unknown_bench_is_refused() -> None:
    with pytest.raises(ConfigError, match="no benchmark x"):
        tables_of(Results("x", {}, []))


@pytest.mark.parametrize("home", sorted(set(HOMES.values())))
def test_every_bench_has_its_module(home: str) -> None:
    assert find_spec(home if home.startswith("benchmarks.") else f"fedreuse.lab.bench.{home}") is not None
