"""An alias: it is what it expands to, its numbers are checked under their own names, and its parts are not hidden."""

from __future__ import annotations

from typing import Any

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.method import methods
from fedreuse.core.registry import named_plain
from fedreuse.methods.alias import Alias

ALIASES = [name for name in methods.names() if issubclass(methods.get(name, "method"), Alias)]


@pytest.mark.parametrize("name", ALIASES)
def test_what_it_expands_to_can_be_written_down_and_read(name: str) -> None:
    made: Any = methods.parse(name, "method")
    tree = made.expand()
    assert not isinstance(tree, Alias)
    assert methods.parse(named_plain(methods, tree), "method") == tree
    assert tree.needs == made.needs
    assert tree.halves("dense") == made.halves("dense")


def test_most_names_are_aliases() -> None:
    assert len(ALIASES) == 21


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("key", ["aggregate", "step", "prox"])
def test_a_part_of_an_alias_is_changed_by_writing_it_out(name: str, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{key}: refused, because {name} is an alias .*describe {name}"):
        methods.parse({"name": name, key: "mean"}, "method")


def test_an_alias_says_what_it_stands_for() -> None:
    with pytest.raises(TypeError, match="abstract method expand"):
        Alias().expand()
