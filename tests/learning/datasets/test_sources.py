"""The table of sources, and official files from a server on loopback."""

from __future__ import annotations

import re
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from fedreuse.learning.datasets import download, packages, sources
from fedreuse.learning.datasets.download import Remote
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.sources import SOURCES, Official


def test_every_dataset_in_files_has_a_source_and_the_official_one_comes_first() -> None:
    assert set(SOURCES) == {name for name, facts in FACTS.items() if facts.forms}
    assert all(places[0].kind == "official" for places in SOURCES.values())


@pytest.mark.parametrize("name", SOURCES)
def test_official_checksums_are_of_the_published_form(name: str) -> None:
    (official,) = (place for place in SOURCES[name] if isinstance(place, Official))
    assert all(re.fullmatch("md5:[0-9a-f]{32}", file.checksum) for file in official.files)


def test_datasets_from_registries_have_a_pinned_digest() -> None:
    # a package has no checksum of its authors: the digest of the arrays is the only proof
    for name, places in SOURCES.items():
        assert FACTS[name].digest is not None or all(place.kind == "official" for place in places)


def test_no_registry_is_named_by_its_address() -> None:
    for module in (sources, packages, download):
        text = Path(str(module.__file__)).read_text()
        assert not re.search(r"npmjs|pypi\.org|pythonhosted|deb\.debian", text)


def test_official_files_are_downloaded_and_taken_out(server: Any, tmp_path: Path) -> None:
    server.files = {"a.bin": b"first", "b.bin": b"second"}
    files = tuple(
        Remote(f"{server.url}/{name}", f"md5:{md5(content).hexdigest()}") for name, content in server.files.items()
    )
    for folder in ("work", "ready"):
        (tmp_path / folder).mkdir()
    place = Official(files)
    place.get(frozenset({"a.bin", "b.bin"}), tmp_path / "work", tmp_path / "ready", lambda *_: None)
    assert (tmp_path / "ready" / "b.bin").read_bytes() == b"second"
    assert place.title == server.url
