"""Search spaces: dimensions, objectives, constraints and selection rule, read from one file."""

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
    """Definition of a search, fixed before its first trial.

    Attributes:
        name: Name of the space.
        base: The configuration that trials change.
        axes: Datasets, methods and the like; every trial runs at each point, and its numbers are means over them.
        seeds: Development seeds; every trial runs with each.
        final_seed: The seed of the configuration that is written at the end.
        dimensions: Settings that are searched.
        sampler: `tpe`, `random`, `grid` (of choices) or `nsga2` (several objectives).
        trials: Number of trials, at least 1; `grid` takes all points.
        batch: Number of trials that are drawn together, at least 1. They may run side by side, and do not depend on
            the number of cores.
        prune: `median` stops a trial whose validation score is below the median of earlier trials in that round;
            `none` stops no trial.
        objectives: Measures to optimise; the first is the main one.
        constraints: Bounds that a trial must satisfy to be chosen.
        rule: Selection rule.
        plain: Content of the file without the base.
        digest: SHA-256 of base and file; it changes with the rule.
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
        """Return the points of the axes: the changes of each, by name."""
        cells: dict[str, Mapping[str, Any]] = {}
        for point in product(*(axis.items() for axis in self.axes.values())):
            changes: Any = {}
            for _, change in point:
                changes = with_changes(changes, change)
            cells[", ".join(label for label, _ in point) or "all"] = changes
        return cells

    def runs(self, params: Mapping[str, Any]) -> dict[str, list[RunConfig]]:
        """Return the configurations of one trial by cell, with the test split sealed."""
        return {
            cell: [self._config(params, changes, {"seed": seed, "test": "sealed"}) for seed in self.seeds]
            for cell, changes in self.cells().items()
        }

    def frozen(self, params: Mapping[str, Any]) -> RunConfig:
        """Return the final configuration of a trial, which refuses to run with a development seed."""
        return self._config(params, {}, {"seed": self.final_seed, "development_seeds": list(self.seeds)})

    @property
    def size(self) -> int:
        """Number of trials."""
        return len(self.grid()) if self.sampler == "grid" else self.trials

    def grid(self) -> list[dict[str, Any]]:
        """Return every combination of the choices."""
        keys, choices = zip(*((dimension.key, dimension.values) for dimension in self.dimensions), strict=True)
        return [dict(zip(keys, point, strict=True)) for point in product(*choices)]

    def _config(self, params: Mapping[str, Any], changes: Mapping[str, Any], last: Mapping[str, Any]) -> RunConfig:
        # changes of the cell come last: one with another method drops the searched settings of this method
        plain = with_changes(with_changes(self.base, tree_of(params.items(), "space.")), changes)
        return load({**plain, **last})


def load_space(path: str | Path, overrides: Sequence[str] = (), *, allow: Sequence[str | Path] = ()) -> Space:
    """Read a search space.

    Args:
        path: A YAML file; `from: OTHER` takes missing keys from another file in the same folder.
        overrides: Changes `key=value` to the base; with `tune.` before the key to the space, such as `tune.trials=4`.
        allow: Modules, packages or folders whose code the space may name, as in `load`.

    Raises:
        ConfigError: An error in the file; a final seed that is a development seed; a rule or sampler that does not fit.

    Example:
        >>> load_space("configs/tune/digits/gate.yaml").rule.name
        'best'
    """
    allow_imports(allow)
    file = Path(path)
    changes = [override.removeprefix("tune.") for override in overrides if override.startswith("tune.")]
    plain = with_overrides(_continued(file), changes)
    for key in plain:
        if key not in _KEYS:
            raise ConfigError(f"{file}: {key}: unknown key; {suggest(str(key), _KEYS)}")
    base = plain.get("base")
    base = read_yaml(Path(base)) if isinstance(base, str | Path) else base
    if not isinstance(base, Mapping):
        raise ConfigError(f"{file}: base: a configuration, or the path of one beside the space, expected; got {base!r}")
    base = with_changes(base, tree_of((plain.get("changes") or {}).items(), "changes."))
    base = with_overrides(base, [override for override in overrides if not override.startswith("tune.")])
    try:
        own = {key: plain[key] for key in plain if key not in ("from", "base", "changes")}
        space = make_space(file.stem, base, own)
        first = {choice.key: choice.values[0] for choice in space.dimensions if choice.kind == "choice"}
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
    """Return the digest of a space; it is the same after a round trip through JSON."""
    return sha256(json.dumps([base, plain], sort_keys=True, default=str).encode()).hexdigest()


def make_space(name: str, base: Mapping[str, Any], plain: Mapping[str, Any]) -> Space:
    """Build a space from its base and the rest of its file.

    Raises:
        ConfigError: An error in one of them.
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
            f"final_seed: {space.final_seed} is a development seed, on which settings are chosen, so it cannot test "
            "them; use another one"
        )
    if space.trials < 1 or space.batch < 1:
        raise ConfigError(f"trials and batch must be at least 1, got {space.trials} and {space.batch}")
    if space.sampler == "grid" and any(dimension.kind != "choice" for dimension in space.dimensions):
        raise ConfigError("sampler: grid needs dimensions of the kind choice; list the values, or use tpe")
    if several and space.prune != "none":
        raise ConfigError("prune: median compares one objective, but there are several; write prune: none")
    if several and space.rule.name == "best":
        raise ConfigError("rule: best uses one objective, but there are several; use pareto or scalarised")
    if space.rule.name == "scalarised" and len(space.rule.weights) != len(space.objectives):
        raise ConfigError(f"rule.weights: {len(space.objectives)} expected, got {list(space.rule.weights)}")


def _no_rule() -> Rule:
    raise ConfigError("rule: missing; it must be fixed before the first trial, for example {name: best}")


def _constraint(given: object, where: str) -> Constraint:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: such as {{metric: active_fraction, at_most: 0.7}} expected, got {given!r}")
    bounds = {key: float(given[key]) for key in ("at_most", "at_least") if key in given}
    measure: Measure = parse(Measure, {key: value for key, value in given.items() if key not in bounds}, where)
    try:
        return Constraint(measure, **bounds)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _count(plain: Mapping[str, Any], key: str, default: int) -> int:
    given = plain.get(key, default)
    if type(given) is not int:
        raise ConfigError(f"{key}: an integer expected, got {given!r}")
    return given


def _whole(given: object, where: str) -> tuple[int, ...]:
    if isinstance(given, list) and given and all(type(number) is int and number >= 0 for number in given):
        return tuple(given)
    raise ConfigError(f"{where}: integers of at least 0 expected, such as [1, 2]; got {given!r}")
