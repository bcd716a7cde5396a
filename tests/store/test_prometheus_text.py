"""The text equals the sums of the ledger."""

from __future__ import annotations

import re
from pathlib import Path

from fedreuse.runs.launch import run
from fedreuse.store.prometheus_text import prometheus_text, samples
from tests.tiny import tiny


def test_bytes_are_those_of_the_ledger(tmp_path: Path) -> None:
    directory = run(tiny(), tmp_path / "run")
    text = prometheus_text(directory)
    for way in ("up", "down"):
        found = re.findall(rf'fedreuse_message_bytes_total{{direction="{way}",kind="\w+"}} (\d+)', text)
        assert sum(map(int, found)) == sum(row.total_bytes for row in directory.ledger() if row.direction == way)
    assert f"fedreuse_rounds_total {len(directory.metrics())}\n" in text
    assert 'fedreuse_state{state="complete"} 1\n' in text
    assert 'fedreuse_resyncs_total{reason="lost state"} 0\n' in text


def test_a_metric_by_hand() -> None:
    assert samples("x_total", "Things.", {'a="1"': 2, 'a="2"': 3}) == (
        "# HELP fedreuse_x_total Things.\n# TYPE fedreuse_x_total counter\n"
        'fedreuse_x_total{a="1"} 2\nfedreuse_x_total{a="2"} 3\n'
    )
