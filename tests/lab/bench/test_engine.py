"""Tables of the engine's bench by hand, and one real match on a tiny workload."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fedreuse.lab.bench.engine import run, tables


def row(name: str, seconds: list[float], **facts: Sequence[float]) -> dict[str, object]:
    return {"contender": name, "seconds": seconds, "cpu_seconds": seconds, **facts}


def test_ratios_by_hand() -> None:
    rows = [
        row("bare loop, 1 process", [10.0, 20.0]),
        row("engine, serial", [11.0, 20.0], examples=[1000, 2100], client_seconds=[9.9, 19.0]),
        row("bare loop, 2 processes", [5.0, 10.0]),
        row("engine, pool of 2", [5.5, 11.0], examples=[1000, 2100]),
        row("DG-FedReuse, serial", [5.5, 10.0], fresh=[5, 5], reused=[5, 5], examples=[500, 1000]),
        row("DG-FedReuse, pool of 2", [3.3, 3.3], fresh=[5, 5], reused=[5, 5], examples=[500, 1000]),
    ]
    rounds, found = tables(rows)
    assert rounds.rows[1][3] == "100"  # 3,100 examples in 31 seconds
    cells = {cells[0]: cells[1] for cells in found.rows}
    assert cells["engine, serial / bare loop, 1 process"] == "1.050 (1.000-1.100)"
    assert cells["engine, pool of 2 / bare loop, 2 processes"] == "1.100 (1.100-1.100)"
    # engine 11 / 5.5 = 2 and 20 / 11 = 1.818, bare loop 2 and 2: 1 and 0.909
    assert cells["gain of two workers, engine / bare loop"] == "0.955 (0.909-1.000)"
    assert cells["DG-FedReuse, serial / FedAvg, all rounds together (0.500 of the clients fresh)"] == "0.500"


def test_resnet_shows_what_is_outside_local_sgd() -> None:
    _, found = tables([row("engine, serial", [10.0, 20.0], client_seconds=[9.0, 19.0])])
    assert found.rows[-1][:2] == ("share of the serial round outside local SGD", "0.075 (0.050-0.100)")


@pytest.mark.slow
@pytest.mark.parametrize("only", [("engine, serial", "engine, pool"), pytest.param((), marks=pytest.mark.long)])
def test_a_real_match_on_a_tiny_workload(only: tuple[str, ...]) -> None:
    rows = {str(row["contender"]): row for row in run("tiny", rounds=1, only=only)}
    assert len(rows) >= (2 if only else 8)
    assert {len(row["seconds"]) for name, row in rows.items() if "step" not in name} == {1}
    serial, pool = rows["engine, serial"], rows["engine, pool of 2"]
    assert serial["examples"] == pool["examples"]  # the same work
    assert serial["fresh"] == pool["fresh"] == [3]
    assert len(tables(list(rows.values()))) == 2


@pytest.mark.slow
def test_only_some_contenders() -> None:
    rows = run("tiny", rounds=1, only=["step"])
    assert [row["contender"] for row in rows] == ["plain step", "tuned step"]
    assert [cells[0] for cells in tables(rows)[1].rows] == ["plain step / tuned step"]
