"""Agreement between a strategy and an app's clients: method and links, array layout, seed, names of records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fedreuse
from fedreuse.compression.wire.envelope import VERSION
from fedreuse.config.recipe import Recipe
from fedreuse.core.bounded import parse_json
from fedreuse.core.errors import WireError
from fedreuse.core.registry import parse
from fedreuse.deploy.existing_app.array_layout import ArrayLayout

__all__ = ["Agreement"]


@dataclass(frozen=True)
class Agreement:
    """Settings that server and clients must share."""

    recipe: Recipe
    layout: ArrayLayout
    seed: int
    arrays_key: str = "arrays"
    examples_key: str = "num-examples"

    def to_bytes(self) -> bytes:
        """Return the agreement as JSON."""
        plain = {
            "fedreuse": fedreuse.__version__,
            "wire": VERSION,
            "recipe": self.recipe.to_plain(),
            "arrays": self.layout.to_plain(),
            "seed": self.seed,
            "keys": [self.arrays_key, self.examples_key],
        }
        return json.dumps(plain).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Agreement:
        """Parse an agreement, which may name parts of this package only: a client imports nothing that a server names.

        Raises:
            WireError: Another version of fedreuse, a part from elsewhere, or malformed bytes.
        """
        try:
            plain = parse_json(data)
            versions = plain["fedreuse"], plain["wire"]
            if versions != (fedreuse.__version__, VERSION):
                raise WireError(
                    f"the server has fedreuse {versions[0]} (wire {versions[1]}), this client "
                    f"{fedreuse.__version__} (wire {VERSION}); install the same version on both"
                )
            _refuse_foreign(plain["recipe"])
            layout = ArrayLayout.from_plain(plain["arrays"])
            arrays_key, examples_key = map(str, plain["keys"])
            recipe: Recipe = parse(Recipe, plain["recipe"], "")
            return Agreement(recipe, layout, int(plain["seed"]), arrays_key, examples_key)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise WireError(f"not an agreement ({type(error).__name__}: {error})") from None


def _refuse_foreign(node: Any) -> None:
    """Raise WireError for any text of the form `package.module:Name` in a recipe."""
    if isinstance(node, str) and ":" in node:
        raise WireError(
            f"the server asks for {node}, which is not part of fedreuse; a client imports nothing that a server "
            "names: choose a method, link and codec that `fedreuse list` shows"
        )
    if isinstance(node, Mapping | list):
        for inner in node.values() if isinstance(node, Mapping) else node:
            _refuse_foreign(inner)
