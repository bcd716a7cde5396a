"""The Python that the documents show runs, block after block, and their configurations and studies can be read."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from fedreuse import load, load_study

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


YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", PAGES)
def test_configurations_and_studies_can_be_read(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "configs" / "digits.yaml", tmp_path)  # studies name it as their base
    for block in YAML_BLOCK.findall((ROOT / document).read_text()):
        name = re.match(r"# (\S+\.yaml)\n", block)
        place = tmp_path / (name[1] if name else "block.yaml")
        place.write_text(block)
        keys = yaml.safe_load(block).keys()
        if "task" in keys:
            load(place)
        elif {"base", "axes"} <= keys and "space" not in keys:
            load_study(place)
