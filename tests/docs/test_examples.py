"""Examples that a visitor copies: the notebook runs to its figure, and the container file names existing files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_notebook_runs_from_its_first_cell_to_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells are plain Python: they are executed one after another in one namespace, as a kernel would."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples/notebook/runs_to_figure.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    space: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "stored without results"
            exec(compile("".join(cell["source"]), "runs_to_figure.ipynb", "exec"), space)
    assert space["failed"] == []
    assert len(space["runs"]) == 4  # type: ignore[arg-type]
    assert len(space["means"]) == 8  # type: ignore[arg-type]
    assert (tmp_path / "score-over-bytes.png").read_bytes().startswith(b"\x89PNG")


def test_the_container_file_names_what_is_there_and_is_nobodys_root() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    copied = [word for line in lines if line.startswith("COPY") for word in line.split()[1:-1]]
    assert copied
    assert [word for word in copied if not (ROOT / word).exists()] == []
    assert re.search(r"^FROM \S+:\S+$", "\n".join(lines), re.MULTILINE), "a tag, not the newest of the day"
    words = [line.split()[0] for line in lines if line and not line.startswith(("#", " "))]
    assert set(words) <= {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD"}
    assert words.index("USER") < words.index("ENTRYPOINT")
