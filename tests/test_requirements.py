"""The released set: core and extra `sim`, one version each as in constraints.txt, with the hashes of their files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
RELEASE = (ROOT / "requirements-release.txt").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(text: str) -> dict[str, str]:
    """Version by name; markers, hashes and comments are left out."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def test_versions_are_those_that_are_tested_together() -> None:
    constraints = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert len(pins(RELEASE)) > 40
    assert {name: constraints.get(name) for name in pins(RELEASE)} == pins(RELEASE)


def test_the_core_and_what_builds_it_are_there() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    simulation = [line for extra in ("cli", "report", "sim") for line in extras[extra] if "fedreuse[" not in line]
    wanted = [*PROJECT["project"]["dependencies"], *simulation, *PROJECT["build-system"]["requires"]]
    for requirement in map(Requirement, wanted):
        assert pins(RELEASE)[canonicalize_name(requirement.name)] in requirement.specifier


def test_every_file_has_its_hash_and_none_a_place() -> None:
    blocks = re.split(r"^(?=\S)", RELEASE, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins(RELEASE))
    assert [block for block in blocks if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)] == []
    assert "://" not in RELEASE
