"""What a strategy tells an app's clients once: method and links, the model's arrays, the seed, the names of records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fedreuse
from fedreuse.compression.wire.envelope import VERSION
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import WireError
from fedreuse.core.registry import parse
from fedreuse.deploy.existing_app.array_layout import ArrayLayout

__all__ = ["Agreement"]


@dataclass(frozen=True)
class Agreement:
    """Everything both ends must hold alike."""

    recipe: Recipe
    layout: ArrayLayout
    seed: int
    arrays_key: str = "arrays"
    examples_key: str = "num-examples"

    def to_bytes(self) -> bytes:
        """JSON."""
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
        """The agreement again. It names parts of this package alone: what a server writes is never imported."""
        try:
            plain = json.loads(data)
            versions = plain["fedreuse"], plain["wire"]
            if versions != (fedreuse.__version__, VERSION):
                raise WireError(
                    f"the server speaks fedreuse {versions[0]} (wire {versions[1]}), this client "
                    f"{fedreuse.__version__} (wire {VERSION}); install the same version at both"
                )
            _refuse_foreign(plain["recipe"])
            layout = ArrayLayout.from_plain(plain["arrays"])
            arrays_key, examples_key = map(str, plain["keys"])
            recipe: Recipe = parse(Recipe, plain["recipe"], "")
            return Agreement(recipe, layout, int(plain["seed"]), arrays_key, examples_key)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise WireError(f"not an agreement ({type(error).__name__}: {error})") from None


def _refuse_foreign(node: Any) -> None:
    """No text in a recipe may be `package.module:Name`, wherever a name may stand."""
    if isinstance(node, str) and ":" in node:
        raise WireError(
            f"the server asks for {node}, which is not part of fedreuse; a client imports nothing that a server "
            "names: choose a method, link and codec that `fedreuse list` shows"
        )
    if isinstance(node, Mapping | list):
        for inner in node.values() if isinstance(node, Mapping) else node:
            _refuse_foreign(inner)
