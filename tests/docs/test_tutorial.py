"""The tutorial on a new method, executed block by block in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "new-method.md"
FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str, str]]:
    """Language, what to do, and text of every block."""
    found = FENCE.findall(TUTORIAL.read_text(encoding="utf-8"))
    return [(language, action, text) for language, action, text in found]


def call(text: str, folder: Path) -> str:
    """Run the lines of a block as a shell would, with the programs of this environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    shown = subprocess.run(["bash", "-euc", text], cwd=folder, env=environment, capture_output=True, text=True)
    assert shown.returncode == 0, f"{text}\n{shown.stdout}\n{shown.stderr}"
    return shown.stdout


@pytest.mark.slow
def test_a_newcomers_path(tmp_path: Path) -> None:
    output, place = "", ("", "")
    done = []
    for language, action, text in blocks():
        verb, _, name = action.partition("=")
        file = tmp_path / name
        if language == "bash":
            output = call(text, tmp_path)
        elif language == "text":
            missing = [line for line in text.splitlines() if line not in output]
            assert not missing, f"the tutorial shows {missing}, the commands say\n{output}"
        elif verb == "write":
            file.write_text(text, encoding="utf-8")
        elif verb == "append":
            file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")
        elif verb == "replace":
            place = (name, text)
            assert (tmp_path / name).read_text(encoding="utf-8").count(text) == 1, f"{name} does not hold once:\n{text}"
        else:
            assert verb == "by", f"a block that is neither run nor used: {language} {action}"
            old = tmp_path / place[0]
            old.write_text(old.read_text(encoding="utf-8").replace(place[1], text), encoding="utf-8")
        done.append(verb or language)
    assert {"bash", "text", "write", "append", "replace", "by"} == set(done)
    assert "FILL IN: how updates become a direction" not in (tmp_path / "fed_cap.py").read_text(encoding="utf-8")
    assert "conforms: fed_cap:FedCap cap=0.9 error_feedback" in call("python conform.py", tmp_path)


def test_every_replacement_is_followed_by_what_replaces_it() -> None:
    verbs = [action.partition("=")[0] for _, action, _ in blocks()]
    pairs = zip(verbs, [*verbs[1:], ""], strict=True)
    assert all((one == "replace") == (other == "by") for one, other in pairs)


def test_the_tutorial_names_files_that_exist() -> None:
    folder = TUTORIAL.parents[2] / "src" / "fedreuse" / "methods"
    named = set(re.findall(r"`(\w+\.py)`", TUTORIAL.read_text(encoding="utf-8"))) - {"fed_cap.py", "conform.py"}
    assert named
    assert [name for name in named if not (folder / name).exists()] == []
