"""Every source file has a mirror: src/fedreuse/a/b.py is tested by tests/a/test_b.py."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path.relative_to(ROOT / "src" / "fedreuse")
    for path in (ROOT / "src" / "fedreuse").rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)


def mirror(source: Path) -> Path:
    return ROOT / "tests" / source.parent / f"test_{source.name}"


def test_there_is_something_to_mirror() -> None:
    assert len(SOURCES) > 50
    assert mirror(Path("engine/rounds.py")) == ROOT / "tests/engine/test_rounds.py"


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_every_source_file_has_tests(source: Path) -> None:
    assert mirror(source).exists(), f"src/fedreuse/{source} has no {mirror(source).relative_to(ROOT)}"
    tree = ast.parse(mirror(source).read_text(encoding="utf-8"))
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert tests, f"{mirror(source).relative_to(ROOT)} tests nothing"


def test_the_references_import_nothing_from_the_package() -> None:
    for path in (ROOT / "tests" / "references").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "fedreuse"], f"{path.name} imports the package"
            inside = [name for name in names if name.startswith("tests.")]
            assert all(name.startswith("tests.references.") for name in inside), f"{path.name} imports other tests"
