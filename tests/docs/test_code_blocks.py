"""The Python that the documents show really runs, block after block, beside the repository's configurations."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("document", ["README.md", "docs/python-api.md"])
def test_blocks_run_in_order(document, tmp_path, monkeypatch):
    blocks = BLOCK.findall((ROOT / document).read_text())
    assert blocks
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "document"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{document}, block {number}", "exec"), names)
