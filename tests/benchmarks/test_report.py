"""The benchmark of the report makes real runs and says what their page costs."""

from __future__ import annotations

import json

import pytest

from benchmarks.report import main


@pytest.mark.slow
def test_a_small_study_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--runs", "3", "--rounds", "2"])
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["rounds"]) == (3, 2)
    assert told["seconds"] >= 0
    assert 1 < told["megabytes"] < 6
