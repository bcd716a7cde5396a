"""What `import fedreuse` shows: about thirty names, each with an example that runs; nothing heavy until it is used."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import fedreuse
from docs.site.reference import public_names

MODULES = {name: place.rpartition(".")[0] for group in public_names().values() for name, place in group.items()}
BY_VALUE = {"registries"}  # documented below its assignment, where only the source has it


def text_of(name: str) -> str:
    """The docstring; of a plain value, what stands below its assignment."""
    found = getattr(fedreuse, name)
    if name not in BY_VALUE:
        return inspect.getdoc(found) or ""
    source = Path(inspect.getsourcefile(sys.modules[MODULES[name]]) or "").read_text(encoding="utf-8")
    return inspect.cleandoc(source.split(f"\n{name}:", 1)[1].split('"""')[1])


def arguments_of(found: object) -> list[str]:
    """What a caller may pass: parameters of a function, fields of a dataclass."""
    if dataclasses.is_dataclass(found):
        return [field.name for field in dataclasses.fields(found) if field.init]
    return list(inspect.signature(found).parameters) if inspect.isfunction(found) else []


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    import fedreuse.core.message  # an imported module is no public name

    assert fedreuse.core.message
    assert dir(fedreuse) == sorted(MODULES) == sorted(fedreuse.__all__)
    assert 25 <= len(MODULES) <= 45
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = fedreuse.nothing_like_it


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_used() -> None:
    program = (
        "import sys, fedreuse; dir(fedreuse); fedreuse.Tensors; fedreuse.Message; fedreuse.describe\n"
        "print([name for name in ('torch', 'pyarrow', 'typer', 'fedreuse.runs') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", MODULES)
def test_a_name_is_documented(name: str) -> None:
    text, found = text_of(name), getattr(fedreuse, name)
    assert "Example:\n" in text
    described = text.partition("Args:\n")[2]
    missing = [argument for argument in arguments_of(found) if f"\n    {argument}: " not in f"\n{described}"]
    assert not missing, f"{name}: Args does not say what these are: {missing}"
    if inspect.isfunction(found):
        assert "Returns:\n" in text or "Yields:\n" in text


@pytest.mark.parametrize("name", MODULES)
def test_its_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(text_of(name), {}, name, None, None)
    assert test.examples
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)
