"""A sample of cases: the ends and what lies evenly between; all where there are few; whoever says so, whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import spread

ROOT = Path(__file__).parents[1]
CASES = """
import pytest

@pytest.mark.parametrize("number", range(9))
def test_sampled(number):
    pass

@pytest.mark.whole
@pytest.mark.parametrize("number", range(9))
def test_whole(number):
    pass
"""


def test_few_are_all_and_many_are_spread() -> None:
    assert spread("abcd", 4) == list("abcd")
    assert spread(range(10), 4) == [0, 3, 6, 9]
    assert spread(range(100), 2) == [0, 99]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "passed"), [(["--sample", "4"], 13), ([], 18)])
def test_the_option_takes_a_sample_and_leaves_whole_tests_whole(tmp_path: Path, words: list[str], passed: int) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    whole\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    path = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert f"{passed} passed" in done.stdout, done.stdout
