"""Cards of methods, links and codecs: front matter, sections in one order, links and names that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.accounting.test_bytes_table import upload

ROOT = Path(__file__).parents[2]
CARDS = sorted((ROOT / "docs" / "methods").glob("*.md"))
TEMPLATE = ROOT / "src" / "fedreuse" / "cli" / "templates" / "card.txt"
KEYS = {"name", "paper", "link", "kind", "needs", "cost", "summary"}
SECTIONS = [
    "What it does",
    "Equations",
    "Conventions of all cards",
    "Messages",
    "State and cost",
    "Reduces to",
    "Differs from the paper",
    "Known traps",
    "Tuned range",
]
by_card = pytest.mark.parametrize("card", CARDS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def words() -> set[str]:
    """Every word of the sources."""
    sources = (ROOT / "src" / "fedreuse").rglob("*.py")
    return {word for path in sources for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


@by_card
def test_front_matter(card: Path) -> None:
    facts = yaml.safe_load(card.read_text(encoding="utf-8").split("---\n")[1])
    assert set(facts) == KEYS
    assert facts["name"] == card.stem
    assert facts["kind"] in {"method", "wrapper", "link", "codec"}
    assert facts["summary"].endswith(".")
    assert facts["paper"] or facts["kind"] in {"link", "codec"}


@pytest.mark.parametrize("card", [*CARDS, TEMPLATE], ids=lambda path: path.stem)
def test_sections_come_in_one_order(card: Path) -> None:
    text = card.read_text(encoding="utf-8")
    found = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert found == [section for section in SECTIONS if section in found]
    needed = {"What it does", "Equations"} | (
        {"Messages"} if re.search(r"^kind: (method|wrapper)$", text, re.M) else set()
    )
    assert needed <= set(found)


@by_card
def test_links_lead_somewhere(card: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", card.read_text(encoding="utf-8")):
        assert (card.parent / target).exists(), target


@by_card
def test_names_in_code_exist(card: Path, words: set[str]) -> None:
    text = card.read_text(encoding="utf-8")
    for name in re.findall(r"`([A-Z]\w+(?:\.\w+)?)`", text):
        assert set(name.split(".")) <= words, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("card", "codec"),
    [
        ("top_k", {"ratio": 0.2}),
        ("rand_k", {"ratio": 0.2}),
        ("natural", {}),
        *(("subspace", {"ratio": ratio}) for ratio in (0.2, 0.05, 0.01)),
        ("laq", {"bits": 4}),
        ("laq", {"bits": 3}),
        *(("qsgd", {"bits": bits}) for bits in (2, 3, 4, 8)),
        *(("eden", {"bits": bits}) for bits in (1, 2, 3, 4)),
        *(("ecuq", {"bits": bits}) for bits in (2, 3, 4)),
        *(("ternary", {"ratio": ratio}) for ratio in (0.2, 0.05, 0.01)),
    ],
    ids=str,
)
def test_uploads_of_the_cnn_have_the_size_on_the_card(card: str, codec: dict[str, float]) -> None:
    size = upload("cnn", {"name": card, **codec}, "dense").group_bytes()
    text = (ROOT / "docs" / "methods" / f"{card}.md").read_text(encoding="utf-8")
    assert f"{size:,}" in text, f"{size:,}"
