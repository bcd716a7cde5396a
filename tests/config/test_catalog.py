"""Names and what they mean: every registry is known, every part of it described, every card read."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest

from fedreuse.config.catalog import card_facts, card_summary, describe, registries
from fedreuse.config.fields import meanings
from fedreuse.core.errors import ConfigError, UserError
from fedreuse.core.registry import REGISTRIES


def test_no_registry_is_forgotten() -> None:
    import fedreuse.config.run_config

    assert fedreuse.config.run_config  # it imports them all
    shipped = {kind for kind, registry in REGISTRIES.items() if registry._home.startswith("fedreuse.")}
    assert set(registries) >= shipped


def test_registries_are_a_mapping_by_kind() -> None:
    assert len(registries) == len(list(registries))
    assert "codecs" in registries
    assert "codec" not in registries
    assert registries["codecs"] is REGISTRIES["codecs"]
    with pytest.raises(UserError, match="did you mean 'codecs'"):
        registries["codec"]


@pytest.mark.parametrize("kind", registries)
def test_every_part_has_a_description(kind: str) -> None:
    for name in registries[kind].names():
        (found,) = [part for part in describe(name) if part.kind == kind]
        assert found.summary
        assert found.module.startswith("fedreuse.")
        assert (kind not in ("methods", "links", "codecs")) or found.card


@dataclass(frozen=True)
class Undeclared:
    """A part of somebody's own that derives from nothing."""


@pytest.mark.parametrize("kind", registries)
def test_a_part_of_ones_own_derives_from_what_declares_its_abilities(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDREUSE_ALLOW", "tests")
    with pytest.raises(ConfigError, match=r"^x\.name: \S+:Undeclared must .* [A-Z]\w+ \(fedreuse\.\S+\)"):
        registries[kind].parse(f"{__name__}:Undeclared", "x")


DOCUMENTED = [kind for kind in registries if kind != "boundaries"]
"""A boundary is named by tables, never by a configuration."""


@pytest.mark.parametrize("kind", DOCUMENTED)
def test_every_key_of_a_part_is_explained(kind: str) -> None:
    for name in registries[kind].names():
        text = inspect.getdoc(registries[kind].get(name, kind)) or ""
        explained = meanings(registries[kind].get(name, kind))
        (found,) = [part for part in describe(name) if part.kind == kind]
        missing = [field.name for field in found.fields if field.name not in explained]
        assert not missing, f"{found.module}: the docstring of {name} does not explain {missing} under Args"
        assert "Example: `" in text or "Example:\n" in text, f"{found.module}: the docstring of {name} has no example"


def test_a_wrong_name_has_a_hint() -> None:
    with pytest.raises(ConfigError, match="nothing is called 'topk'; did you mean 'top_k'"):
        describe("topk")


def test_a_card_that_is_not_there_says_nothing() -> None:
    assert card_summary("no_such_method") == ""
    assert card_facts("no_such_method") == {}
    assert card_facts("top_k")["kind"] == "codec"


def test_a_summary_has_no_link_targets() -> None:
    assert "`error_feedback`" in card_summary("fed_ef")
    assert ".md" not in "".join(map(card_summary, registries["methods"].names()))
