"""Natural clients in one Parquet file: the file is what was asked for, and a real run starts from it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.lab.bench.files import NaturalClients, run, tables, write


def test_the_file_has_two_examples_of_everybody_at_least(tmp_path: Path) -> None:
    write(NaturalClients(clients=50, examples=3, cohort=5, columns=2), tmp_path / "clients.parquet")
    table = pq.read_table(tmp_path / "clients.parquet")
    assert table.column_names == ["user", "x0", "x1", "label"]
    owners = Counter(table["user"].to_pylist())
    assert len(owners) == 50
    assert min(owners.values()) >= 2
    assert sum(owners.values()) == 150
    assert table["user"].to_pylist()[:50] != sorted(table["user"].to_pylist()[:50])


@pytest.mark.slow
def test_a_real_run_is_timed_and_weighed() -> None:
    told: list[str] = []
    (row,) = run(NaturalClients(clients=300, cohort=10, rounds=2), tell=told.append)
    assert 0 < row["first_round_seconds"] <= row["seconds"]
    assert row["peak_bytes"] > 50_000_000
    assert tables([row])[0].rows[0][:2] == ("300", "1,200")
    assert len(told) == 2


def test_a_round_of_more_than_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="--clients must be at least"):
        NaturalClients(clients=5)
