"""`fedreuse new-method`: write a skeleton of a method that runs, in a checkout of the source or in any folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json, show_lines
from fedreuse.core.errors import UserError

__all__ = ["add_case", "find_checkout", "new_method_command"]

_CASES = Path("tests/conformance/cases.py")
_TEST_IMPORTS = (
    "from fedreuse.core.method import Method",
    "from fedreuse.core.errors import ConfigError",
    "from fedreuse.methods.aliases import FedAvg",
    "from fedreuse.core.tensors import is_equal",
    "from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting",
)


@dataclass(frozen=True)
class _Plan:
    """Files to write, next steps to print, and the conformance table to extend."""

    files: dict[Path, str]
    next_steps: tuple[str, ...]
    cases: Path | None = None


@app.command("new-method", epilog="Example: fedreuse new-method fed_example")
def new_method_command(
    name: Annotated[str, typer.Argument(help="A Python identifier in lower case.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write the skeleton of a new method: a FedAvg that runs.

    The lines to change are marked FILL IN. In a checkout of the source it writes the method, its card, its test, and a
    line in the conformance table. In any other folder: a module, its test, its card, and a configuration that uses it.
    """
    _require_new(name)
    checkout = find_checkout(Path.cwd())
    plan = _in_folder(name) if checkout is None else _in_checkout(name, checkout)
    for file in plan.files:
        if file.exists():
            raise UserError(f"{file} exists already and is not overwritten; choose another name, or move it away")
    written = dict(plan.files)
    if plan.cases is not None:
        written[plan.cases] = add_case(plan.cases, name)
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if as_json:
        show_json({"name": name, "files": [str(file) for file in written], "next": list(plan.next_steps)})
    else:
        changes = [f"{'added a line to' if file == plan.cases else 'wrote'} {_near(file)}" for file in written]
        show_lines(*changes, "", "next:", *(f"  {step}" for step in plan.next_steps))


def find_checkout(folder: Path) -> Path | None:
    """Return the root of the fedreuse checkout that contains a folder, or None."""
    for root in (folder, *folder.parents):
        project = root / "pyproject.toml"
        if project.is_file() and (root / "src" / "fedreuse" / "methods").is_dir():
            return root if tomllib.loads(project.read_text()).get("project", {}).get("name") == "fedreuse" else None
    return None


def add_case(cases: Path, name: str) -> str:
    """Return the text of the conformance table with one more case."""
    if not cases.is_file():
        raise UserError(f"{cases} is missing, so the method cannot be added to the conformance table; restore it")
    head, opening, table = cases.read_text(encoding="utf-8").partition("CASES = [\n")
    rows, closing, rest = table.partition("\n]\n")
    if not opening or not closing:
        raise UserError(f'{cases}: no list `CASES = [` that ends in a line `]`; add Case("{name}") by hand')
    return f'{head}{opening}{rows}\n    Case("{name}"),{closing}{rest}'


def _require_new(name: str) -> None:
    from fedreuse.config.catalog import registry_of

    if not name.isidentifier() or iskeyword(name) or name != name.lower() or name.startswith("_"):
        raise UserError(f"'{name}' cannot name a method; use a Python identifier in lower case, such as fed_example")
    if name in registry_of("methods").names():
        raise UserError(f"'{name}' exists already (see `fedreuse describe {name}`); choose another name")


def _in_checkout(name: str, root: Path) -> _Plan:
    words = _words(name, f"fedreuse.methods.{name}")
    words |= {
        "import_methods": "from fedreuse.core.method import ClientHalf, MethodConfig, ServerHalf, methods",
        "register": f'@methods.register("{name}")\n',
        "place": f"`methods/{name}.py`",
        "test_imports": "\n".join(sorted([*_TEST_IMPORTS, f"from {words['module']} import {words['cls']}"])),
    }
    written = {
        root / "src" / "fedreuse" / "methods" / f"{name}.py": _fill("method", words),
        root / "docs" / "methods" / f"{name}.md": _fill("card", words),
        root / "tests" / "methods" / f"test_{name}.py": _fill("test", words),
    }
    steps = (
        f"change the lines marked FILL IN in src/fedreuse/methods/{name}.py, then card and test",
        f"python -m pytest tests/methods/test_{name}.py tests/conformance -k {name}",
        f"fedreuse run configs/digits.yaml method={name}",
    )
    return _Plan(written, steps, root / _CASES)


def _in_folder(name: str) -> _Plan:
    if find_spec(name) is not None and not Path(f"{name}.py").exists():
        raise UserError(f"'{name}' is the name of a Python module, which {name}.py would hide; choose another name")
    words = _words(name, name)
    words |= {
        "import_methods": "from fedreuse.core.method import ClientHalf, MethodConfig, ServerHalf",
        "register": "",
        "place": f"`{name}.py`",
        "test_imports": "\n".join([*_TEST_IMPORTS, "", f"from {name} import {words['cls']}"]),
    }
    here = Path.cwd()
    written = {
        here / f"{name}.py": _fill("method", words),
        here / f"{name}.md": _fill("card", words),
        here / f"test_{name}.py": _fill("test", words),
        here / f"{name}.yaml": _fill("config", words),
    }
    steps = (
        f"fedreuse run {name}.yaml",
        f"python -m pytest test_{name}.py",
        f"change the lines marked FILL IN in {name}.py",
    )
    return _Plan(written, steps)


def _words(name: str, module: str) -> dict[str, str]:
    return {"name": name, "cls": "".join(word.capitalize() for word in name.split("_")), "module": module}


def _fill(template: str, words: dict[str, str]) -> str:
    text = (files("fedreuse.cli") / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _near(file: Path) -> Path:
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
