"""Code, configurations and commands in the documents work."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest
import yaml
from typer.main import get_command

from fedreuse import RunDirectory, load, load_study
from fedreuse.cli import main
from fedreuse.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\S+\.yaml)\n")


def blocks(document: str, *languages: str) -> list[tuple[str, str]]:
    """Return language and text of the blocks of a document, in order."""
    return [found for found in BLOCK.findall((ROOT / document).read_text(encoding="utf-8")) if found[0] in languages]


def commands(document: str) -> list[list[str]]:
    """Return the words of every `fedreuse` command in the shell blocks of a document, without comments."""
    text = "\n".join(text for _, text in blocks(document, "bash")).replace("\\\n", " ")
    lines = (shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("fedreuse "))
    return [words[1 : words.index(">") if ">" in words else None] for words in lines]


def call(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fedreuse", *words])
    with pytest.raises(SystemExit) as ended:
        sys.exit(main())
    assert ended.value.code in (0, None), words


@pytest.mark.slow
@pytest.mark.parametrize("document", ["README.md", "docs/how-to/channel.md", "docs/how-to/python.md"])
def test_python_blocks_run_in_order(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "document"}
    for number, (_, block) in enumerate(blocks(document, "python"), start=1):
        exec(compile(block, f"{document}, block {number}", "exec"), names)
    if document == "README.md":
        result, text = names["result"], (ROOT / document).read_text(encoding="utf-8")
        assert isinstance(result, RunDirectory)
        shown = result.summary["test_score"], result.traffic()["messages"].saving()
        assert [number for number in shown if f"# {number:.3f}" not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("document", ["docs/tutorials/your-data.md"])
def test_tutorials_run_from_top_to_bottom(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for language, block in blocks(document, "python", "yaml", "bash"):
        if language == "python":
            exec(compile(block, document, "exec"), {})
        elif language == "yaml" and (name := NAMED.match(block)):
            Path(name[1]).write_text(block, encoding="utf-8")
    for words in commands(document):
        call(words, monkeypatch)


@pytest.mark.slow
def test_custom_parts_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = "docs/how-to/custom-parts.md"
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("\n\n".join(text for _, text in blocks(document, "python")), encoding="utf-8")
    (small,) = [text for _, text in blocks(document, "yaml")]
    Path("small.yaml").write_text(small, encoding="utf-8")
    shown = re.findall(
        r"^`fedreuse (run small\.yaml .*)`$", (ROOT / document).read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(shown) >= 4
    for number, words in enumerate(shown):
        call([*shlex.split(words), "--out", f"runs/{number}"], monkeypatch)


@pytest.mark.parametrize("document", PAGES)
def test_configurations_and_studies_can_be_read(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "configs" / "digits.yaml", tmp_path)  # studies name it as their base
    for _, block in blocks(document, "yaml"):
        name = NAMED.match(block)
        place = tmp_path / (name[1] if name else "block.yaml")
        place.write_text(block, encoding="utf-8")
        keys = yaml.safe_load(block).keys()
        if "task" in keys:
            load(place)
        elif {"base", "axes"} <= keys and "space" not in keys:
            load_study(place)


@pytest.mark.parametrize("document", PAGES)
def test_commands_exist_with_their_options_and_files(document: str) -> None:
    for words in commands(document):
        command: click.Command = get_command(app)
        while isinstance(command, click.Group):
            name = words.pop(0)
            assert name in command.commands, f"fedreuse has no command {name}"
            command = command.commands[name]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= known, f"fedreuse {command.name} has no {used - known}"
        shipped = [word for word in words if word.startswith("configs/")]
        assert [word for word in shipped if not (ROOT / word).exists()] == []
