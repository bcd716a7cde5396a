"""The table of the NVFlare page has the stored numbers."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_has_the_measured_bytes() -> None:
    stored = json.loads((ROOT / "docs/bench/nvflare.json").read_text())
    page = (ROOT / "docs/how-to/nvflare.md").read_text(encoding="utf-8")
    assert f"over {stored['rounds']} rounds" in page.replace("\n", " ")
    for name, row in stored["jobs"].items():
        line = f" | {row['up'] / 1e6:.1f} | {row['down'] / 1e6:.1f} | {row['accuracy']:.3f} |"
        assert any(name in shown and shown.endswith(line) for shown in page.splitlines()), (name, line)
