"""A search space: what is searched, how it is judged, and by which rule the winner is chosen; read from one file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from fedreuse.config.changes import tree_of
from fedreuse.config.run_config import RunConfig, load, read_yaml, with_changes, with_overrides
from fedreuse.core.allowed import allow as allow_imports
from fedreuse.core.errors import ConfigError, suggest
from fedreuse.core.registry import parse
from fedreuse.studies.changes import points
from fedreuse.studies.tuning.dimensions import Dimension, parse_dimensions
from fedreuse.studies.tuning.measures import Constraint, Measure
from fedreuse.studies.tuning.rules import Rule

__all__ = ["Space", "digest_of", "load_space", "make_space"]

Sampler = Literal["tpe", "random", "grid", "nsga2"]
_KEYS = ("from", "base", "changes", "axes", "seeds", "final_seed", "space", "sampler", "trials", "batch", "prune",
         "objectives", "constraints", "rule")  # fmt: skip


@dataclass(frozen=True)
class Space:
    """A search, fixed before its first trial.

    Attributes:
        name: What it is called.
        base: The configuration that trials change.
        axes: Every trial runs at each point of these (datasets, methods), and its numbers are means over them.
        seeds: Development seeds; every trial runs with each.
        final_seed: The seed of the configuration that is written at the end.
        dimensions: What is searched.
        sampler: `tpe`, `random`, `grid` (of choices) or `nsga2` (several objectives).
        trials: How many; for `grid` all points.
        batch: Trials that are asked for before one of them ends: they may run side by side, and what they are does
            not depend on how many cores there are.
        prune: `median` stops a trial whose validation score is below the median of earlier trials in that round.
        objectives: What counts; the first one most.
        constraints: What a trial must keep to be chosen.
        rule: How the winner is chosen.
        plain: What the file says beside the base.
        digest: SHA-256 of base and file: another rule is another space.
    """

    name: str
    base: Mapping[str, Any]
    axes: Mapping[str, Mapping[str, Any]]
    seeds: tuple[int, ...]
    final_seed: int
    dimensions: tuple[Dimension, ...]
    sampler: Sampler
    trials: int
    batch: int
    prune: Literal["none", "median"]
    objectives: tuple[Measure, ...]
    constraints: tuple[Constraint, ...]
    rule: Rule
    plain: Mapping[str, Any]
    digest: str

    def cells(self) -> dict[str, Mapping[str, Any]]:
        """The points of the axes: a name, and what each changes."""
        found: dict[str, Mapping[str, Any]] = {}
        for point in product(*(axis.items() for axis in self.axes.values())):
            changes: Any = {}
            for _, change in point:
                changes = with_changes(changes, change)
            found[", ".join(label for label, _ in point) or "all"] = changes
        return found

    def runs(self, params: Mapping[str, Any]) -> dict[str, list[RunConfig]]:
        """The sealed runs of one trial, by cell."""
        return {
            cell: [self._config(params, changes, {"seed": seed, "test": "sealed"}) for seed in self.seeds]
            for cell, changes in self.cells().items()
        }

    def frozen(self, params: Mapping[str, Any]) -> RunConfig:
        """The configuration of a choice, which no development seed may run."""
        return self._config(params, {}, {"seed": self.final_seed, "development_seeds": list(self.seeds)})

    @property
    def size(self) -> int:
        """How many trials there are."""
        return len(self.grid()) if self.sampler == "grid" else self.trials

    def grid(self) -> list[dict[str, Any]]:
        """Every combination of the choices."""
        keys = [dimension.key for dimension in self.dimensions]
        return [dict(zip(keys, point, strict=True)) for point in product(*(one.values for one in self.dimensions))]

    def _config(self, params: Mapping[str, Any], changes: Mapping[str, Any], last: Mapping[str, Any]) -> RunConfig:
        # a cell with another method drops what is searched of this one
        plain = with_changes(with_changes(self.base, tree_of(params.items(), "space.")), changes)
        return load({**plain, **last})


def load_space(path: str | Path, overrides: Sequence[str] = (), *, allow: Sequence[str | Path] = ()) -> Space:
    """Read a search space.

    Args:
        path: A YAML file; `from: OTHER` takes all keys of another file beside it that this one does not give.
        overrides: Changes `key=value` to the base; with `tune.` before the key to the space, such as `tune.trials=4`.
        allow: Modules, packages or folders whose code the space may name, as in `load`.

    Raises:
        ConfigError: A mistake in the file; development seeds that are final seeds; a rule or sampler that does not fit.

    Example:
        >>> load_space("configs/tune/digits/gate.yaml").rule.name
        'best'
    """
    allow_imports(allow)
    file = Path(path)
    changes = [one.removeprefix("tune.") for one in overrides if one.startswith("tune.")]
    plain = with_overrides(_continued(file), changes)
    for key in plain:
        if key not in _KEYS:
            raise ConfigError(f"{file}: {key}: unknown key; {suggest(str(key), _KEYS)}")
    base = plain.get("base")
    base = read_yaml(Path(base)) if isinstance(base, str | Path) else base
    if not isinstance(base, Mapping):
        raise ConfigError(f"{file}: base: a configuration, or the path of one beside the space, expected; got {base!r}")
    base = with_changes(base, tree_of((plain.get("changes") or {}).items(), "changes."))
    base = with_overrides(base, [one for one in overrides if not one.startswith("tune.")])
    try:
        own = {key: plain[key] for key in plain if key not in ("from", "base", "changes")}
        space = make_space(file.stem, base, own)
        first = {one.key: one.values[0] for one in space.dimensions if one.kind == "choice"}
        space.frozen(first)
        space.runs(first)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    return space


def _continued(file: Path) -> dict[str, Any]:
    plain = read_yaml(file)
    if isinstance(plain.get("base"), str):
        plain["base"] = file.parent / plain["base"]
    return {**_continued(file.parent / plain["from"]), **plain} if "from" in plain else plain


def digest_of(base: Mapping[str, Any], plain: Mapping[str, Any]) -> str:
    """The digest of a space: the same for what a file says and for what JSON kept of it."""
    return sha256(json.dumps([base, plain], sort_keys=True, default=str).encode()).hexdigest()


def make_space(name: str, base: Mapping[str, Any], plain: Mapping[str, Any]) -> Space:
    """A space from its base and what its file says beside it.

    Raises:
        ConfigError: A mistake in one of them.
    """
    dimensions = parse_dimensions(plain.get("space"), "space")
    sampler: Any = plain.get("sampler", "tpe")
    prune: Any = plain.get("prune", "none")
    if sampler not in get_args(Sampler) or prune not in ("none", "median"):
        raise ConfigError(f"sampler: {', '.join(get_args(Sampler))}, and prune: none, median; got {sampler}, {prune}")
    axes = {str(axis): points(str(axis), given, f"axes.{axis}") for axis, given in (plain.get("axes") or {}).items()}
    objectives = tuple(parse(Measure, one, f"objectives[{at}]") for at, one in enumerate(plain.get("objectives", [{}])))
    constraints = tuple(_constraint(one, f"constraints[{at}]") for at, one in enumerate(plain.get("constraints", [])))
    rule: Rule = parse(Rule, plain.get("rule"), "rule") if "rule" in plain else _no_rule()
    seeds, final = _whole(plain.get("seeds"), "seeds"), _whole([plain.get("final_seed", 101)], "final_seed")[0]
    trials, batch = _count(plain, "trials", 20), _count(plain, "batch", 2)
    space = Space(
        name, base, axes, seeds, final, dimensions, sampler, trials, batch, prune,
        objectives, constraints, rule, plain, digest_of(base, plain),
    )  # fmt: skip
    _check(space)
    return space


def _check(space: Space) -> None:
    """Refuse parts that do not fit each other."""
    several = len(space.objectives) > 1
    if space.final_seed in space.seeds:
        raise ConfigError(
            f"final_seed: {space.final_seed} is a development seed, with which settings are chosen, so it cannot test "
            "them; take another one"
        )
    if space.trials < 1 or space.batch < 1:
        raise ConfigError(f"trials and batch must be at least 1, got {space.trials} and {space.batch}")
    if space.sampler == "grid" and any(one.kind != "choice" for one in space.dimensions):
        raise ConfigError("sampler: grid needs dimensions of the kind choice; write the values out, or take tpe")
    if several and space.prune != "none":
        raise ConfigError("prune: median compares one objective, but there are several; write prune: none")
    if several and space.rule.name == "best":
        raise ConfigError("rule: best looks at one objective, but there are several; take pareto or scalarised")
    if space.rule.name == "scalarised" and len(space.rule.weights) != len(space.objectives):
        raise ConfigError(f"rule.weights: {len(space.objectives)} expected, got {list(space.rule.weights)}")


def _no_rule() -> Rule:
    raise ConfigError("rule: how the winner is chosen must stand here before the first trial, such as {name: best}")


def _constraint(given: object, where: str) -> Constraint:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: such as {{metric: active_fraction, at_most: 0.7}} expected, got {given!r}")
    bounds = {key: float(given[key]) for key in ("at_most", "at_least") if key in given}
    measure: Measure = parse(Measure, {key: one for key, one in given.items() if key not in bounds}, where)
    try:
        return Constraint(measure, **bounds)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _count(plain: Mapping[str, Any], key: str, usual: int) -> int:
    given = plain.get(key, usual)
    if type(given) is not int:
        raise ConfigError(f"{key}: a whole number expected, got {given!r}")
    return given


def _whole(given: object, where: str) -> tuple[int, ...]:
    if isinstance(given, list) and given and all(type(one) is int and one >= 0 for one in given):
        return tuple(given)
    raise ConfigError(f"{where}: whole numbers from 0 on expected, such as [1, 2]; got {given!r}")
