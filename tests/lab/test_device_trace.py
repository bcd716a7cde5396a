"""The example trace: the shipped file is what the command writes, and its means are the published ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.engine.devices import TraceOfDevices
from fedreuse.lab.device_trace import DAY, example_rows, write_example

SHIPPED = Path(__file__).parents[2] / "configs" / "devices" / "day.csv"


def test_the_shipped_trace_is_what_the_command_writes(tmp_path: Path) -> None:
    write_example(tmp_path / "day.csv", 20)
    assert (tmp_path / "day.csv").read_bytes() == SHIPPED.read_bytes()
    assert len(TraceOfDevices(str(SHIPPED), period=DAY).fleet(20, 0).digest) == 64


def test_means_are_the_published_ones() -> None:
    best: dict[int, tuple[int, int, int]] = {}
    for client, _, *rates in example_rows(6000):
        best[client] = max(best.get(client, (0, 0, 0)), tuple(rates))  # type: ignore[type-var]
    up, down, compute = np.array(list(best.values())).T
    # two thirds mobile, one third fixed
    assert up.mean() == pytest.approx(2 / 3 * 11.22e6 + 45.74e6 / 3, rel=0.06)
    assert down.mean() == pytest.approx(2 / 3 * 35.96e6 + 85.73e6 / 3, rel=0.06)
    assert 1e9 <= compute.min() < compute.max() <= 20e9


def test_no_client_is_refused() -> None:
    with pytest.raises(ConfigError, match="clients must be at least 1"):
        example_rows(0)
