"""The page as a file: nothing from outside, names escaped, the same bytes for the same runs, tables in both forms."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

import pytest

from fedreuse.report.page.html import render
from fedreuse.report.page.page import page_of
from fedreuse.report.table_forms import to_latex

pytestmark = pytest.mark.slow  # the runs behind it


@pytest.fixture(scope="module")
def page(planned: Path) -> str:
    return render(page_of([planned]))


def _packed(page: str, name: str) -> bytes:
    found = re.search(rf'id="{name}">([^<]*)<', page)
    assert found is not None
    return gzip.decompress(b64decode(found[1]))


def test_nothing_comes_from_outside(page: str) -> None:
    shell = re.sub(r'<script type="text/plain".*?</script>', "", page)
    # an empty icon keeps browsers from asking the server for one; it holds nothing, and names nobody
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:,["'])""", shell)
    assert "connect-src 'none'" in shell
    assert _packed(page, "library").startswith(b"/**\n* plotly.js")


def test_names_are_text_and_never_markup(page: str) -> None:
    assert "dense &lt;b&gt;" in page
    assert "dense <b>" not in re.sub(r'<script type="text/plain".*?</script>', "", page)


def test_every_figure_has_words_and_every_table_both_forms(page: str, planned: Path) -> None:
    data = json.loads(_packed(page, "data"))
    for key in data["figures"]:
        words = re.search(rf'<p id="text-{key}">(.*?)</p>', page, re.DOTALL)
        assert words is not None
        assert len(words[1]) > 40
    assert page.count('class="scroll"') == len(data["tables"])
    first = page_of([planned]).tables[0]
    assert data["tables"]["answer-1"]["latex"] == to_latex(first)


def test_the_same_runs_are_the_same_page(page: str, planned: Path) -> None:
    assert render(page_of([planned])) == page
    assert len(page) < 3_000_000


def test_a_page_that_follows_asks_its_own_server_alone(planned: Path) -> None:
    live = render(page_of([planned]), refresh_seconds=5, state="abc")
    assert "connect-src 'self'" in live
    assert 'data-refresh="5" data-state="abc"' in live
