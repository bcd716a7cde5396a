"""Sizes and times of extras in the README are the measured ones, and no extra is missing."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_sizes_in_the_readme_are_those_that_were_measured() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:`(\w+)`|\(none\)) \| .* \| ([\d,]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    shown = {name or "core": (int(size.replace(",", "")), minutes) for name, size, minutes in rows}
    measured = json.loads((ROOT / "docs/bench/extras.json").read_text(encoding="utf-8"))["rows"]
    assert shown == {row["extra"]: (row["megabytes"], f"{row['seconds'] / 60:.1f}") for row in measured}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert shown.keys() == {"core", *declared} - {"dev", "docs"}
