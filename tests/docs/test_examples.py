"""Examples that a visitor copies: notebooks run to their last cell, and the container file names existing files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _executed(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Execute the cells of a notebook, which are plain Python, in one namespace, as a kernel would."""
    monkeypatch.chdir(place)
    notebook = json.loads((ROOT / "examples/notebook" / name).read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    space: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "stored without results"
            exec(compile("".join(cell["source"]), name, "exec"), space)
    return space


@pytest.mark.slow
def test_the_notebook_that_compares_methods_runs_to_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = _executed("compare_methods.ipynb", tmp_path, monkeypatch)
    assert space["failed"] == []
    assert len(space["runs"]) == 12
    assert len(space["means"]) == 40
    assert [one.num_seeds for one in space["found"]] == [3, 3, 3]
    assert (tmp_path / "score-over-bytes.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_notebook_with_own_data_trains_a_class_of_the_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = _executed("own_data_and_model.ipynb", tmp_path, monkeypatch)
    assert type(space["lean"].model).__name__ == "Net"
    assert space["lean"].bytes.both == pytest.approx(0.95, abs=0.01)
    assert space["report"].exists()


@pytest.mark.slow
def test_the_notebook_with_a_flower_app_keeps_its_budget(tmp_path: Path) -> None:
    """In a process of its own: Flower's simulation starts Ray, which outlives the cells.

    `ray.init()` would join the cluster of another test, whose nodes are killed; the notebook starts one of its own.
    """
    notebook = json.loads((ROOT / "examples/notebook/flower_app_made_lean.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    traffic = "{way: strategy.traffic.total(way) / strategy.traffic.total_dense(way) for way in ('up', 'down')}"
    last = f"import json\nPath('found.json').write_text(json.dumps([lean, {traffic}]))"
    (tmp_path / "notebook.py").write_text("\n\n".join([*cells, last]), encoding="utf-8")
    subprocess.run([sys.executable, "notebook.py"], cwd=tmp_path, check=True, capture_output=True, timeout=600)
    accuracy, shares = json.loads((tmp_path / "found.json").read_text())
    assert max(shares.values()) <= 0.1
    assert accuracy > 0.8


def test_the_container_file_names_what_is_there_and_is_nobodys_root() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    copied = [word for line in lines if line.startswith("COPY") for word in line.split()[1:-1]]
    assert copied
    assert [word for word in copied if not (ROOT / word).exists()] == []
    assert re.search(r"^FROM \S+:\S+$", "\n".join(lines), re.MULTILINE), "a tag, not the newest of the day"
    words = [line.split()[0] for line in lines if line and not line.startswith(("#", " "))]
    linked = [path.resolve().relative_to(ROOT).parts[0] for path in (ROOT / "src").rglob("*") if path.is_symlink()]
    assert set(linked) <= set(copied)  # a link into a folder that is not copied leaves its pages out of the package
    assert set(words) <= {"FROM", "ARG", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD"}
    assert words.index("USER") < words.index("ENTRYPOINT")
