"""The site's pages: every document has one place, links and blocks fit the site, tables are those of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site import pages, reference, tables
from docs.site.marks import fill
from fedreuse.config.catalog import registries

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages.pages()


def places(entries: list) -> list[str]:
    """Every page of a part, whatever it is nested in."""
    flat = []
    for entry in entries:
        flat += [entry] if isinstance(entry, str) else [place for inner in entry.values() for place in places(inner)]
    return flat


@pytest.mark.slow
def test_every_page_has_one_place_and_every_place_a_page(made: dict[str, str]) -> None:
    listed = [place for part in pages.navigation(made) for inner in part.values() for place in places(inner)]
    assert sorted(listed) == sorted(made)


@pytest.mark.slow
def test_every_method_has_its_row_and_its_card(made: dict[str, str]) -> None:
    for name in registries["methods"].names():
        assert f"[{name}]({name}.md)" in made["methods/index.md"]
        assert f"methods/{name}.md" in made


def test_links_between_the_root_and_the_documents(made: dict[str, str]) -> None:
    assert "](../reference/configuration.md)" in made["development/contributing.md"]
    assert "](contributing.md#adding-a-part)" in made["development/architecture.md"]
    assert "](../development/contributing.md)" in made["tutorials/new-method.md"]


def test_what_a_test_does_with_a_block_becomes_its_title(made: dict[str, str]) -> None:
    assert '```python title="replace fed_cap.py"' in made["tutorials/new-method.md"]
    assert '```python title="by"' in made["tutorials/new-method.md"]


def test_the_public_names_are_under_headings() -> None:
    groups = reference.public_names()
    assert groups["Tensors"]["Tensors"] == "fedreuse.core.tensors.Tensors"
    assert all(groups.values())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_those_of_the_registries(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert fill(text, "table", tables.table) == text, (
        f"{document.name}: a part or its keys changed; write the tables with `make tables`"
    )


def test_every_kind_of_part_has_its_table() -> None:
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    missing = [kind for kind in registries if f"<!-- table: {kind} -->" not in text]
    assert not missing, f"docs/reference/configuration.md: add `<!-- table: KIND -->` and `<!-- end -->` for {missing}"


def test_a_table_shows_keys_as_a_configuration_does() -> None:
    rows = tables.table("methods").splitlines()
    (row,) = [row for row in rows if row.startswith("| [`docofl`]")]
    assert "`anchor: ecuq`" in row
    assert "`correction: {name: ecuq, bits: 3.0}`" in row
