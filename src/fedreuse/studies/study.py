"""Studies: a base configuration plus axes, expanded and parsed before the first run starts.

base: digits.yaml                       # a mapping, or a file beside the study
changes: {rounds.count: 20}             # optional: to the base, by dotted key
axes:
  method:                               # labels, with the changes of each
    dense FedAvg: {method: fedavg}
    Top-K: {uplink: {update: {name: top_k, ratio: 0.2}}}
  seed: [101, 202]                      # or a list of values of one dotted key
rank: test                              # optional: score by which tables are sorted
plan: {contrasts: [...]}                # optional: claims to test (see `fedreuse.lab.plans`)

An axis may start from that of another study: `method: {from: other.yaml, Top-K: {uplink.update.ratio: 0.1}}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from fedreuse.config.changes import tree_of
from fedreuse.config.run_config import RunConfig, load, read_yaml, with_changes, with_overrides
from fedreuse.config.shipped import find_config
from fedreuse.core.allowed import allow as allow_imports
from fedreuse.core.errors import ConfigError, RunDirectoryError, suggest
from fedreuse.core.files import write_whole
from fedreuse.store.directory import RunDirectory
from fedreuse.studies.changes import points

__all__ = ["Study", "StudyRun", "expand", "load_study"]

_KEYS = ("base", "changes", "axes", "rank", "plan")
_RANKS = ("test", "validation")
_FROM, _AXES = "from", "axes."
_SEED_AXIS = "seed"


@dataclass(frozen=True)
class StudyRun:
    """One point of the axes: its labels and its configuration."""

    labels: Mapping[str, str]
    config: RunConfig

    @property
    def variant(self) -> str:
        """Labels of all axes but the seed; runs of one variant are averaged."""
        named = ", ".join(label for axis, label in self.labels.items() if axis != _SEED_AXIS)
        return named or str(self.config.to_plain()["method"]["name"])

    @property
    def title(self) -> str:
        """Variant and seed, for display."""
        return f"{self.variant}, seed {self.config.seed}"

    @property
    def folder(self) -> str:
        """Name of the run directory: readable, and unique to the configuration."""
        slug = re.sub(r"[^a-z0-9.]+", "-", f"{self.variant} s{self.config.seed}".lower()).strip("-.")
        return f"{slug[:60]}-{self.config.run_id}"


@dataclass(frozen=True)
class Study:
    """Set of runs that is listed in full before the first one starts.

    Args:
        name: Name of the study.
        runs: Labels and configuration of each run.
        rank: Score by which tables are sorted, `test` or `validation`; None: in the order of the axes.
        plan: Hypotheses to test, as written in the file; `fedreuse.lab.plans` reads them. None: no plan.

    Example:
        >>> from pathlib import Path
        >>> from fedreuse import load_study
        >>> _ = Path("two.yaml").write_text("{base: {task: {name: digits}}, axes: {seed: [101, 202]}}")
        >>> study = load_study("two.yaml")
        >>> study.name, [planned.config.seed for planned in study.runs]
        ('two', [101, 202])
    """

    name: str
    runs: tuple[StudyRun, ...]
    rank: str | None = None
    plan: Mapping[str, Any] | None = None

    @property
    def axes(self) -> dict[str, list[str]]:
        """Labels of every axis but the seed, in the order of the file."""
        labels: dict[str, list[str]] = {}
        for planned in self.runs:
            for axis, label in planned.labels.items():
                if axis != _SEED_AXIS and label not in labels.setdefault(axis, []):
                    labels[axis].append(label)
        return labels

    def frame(self, out: str | Path) -> Any:
        """Return the study's runs in a folder as a pandas table with a row per run.

        Args:
            out: The folder of the runs (`fedreuse compare --out`).

        Returns:
            A `pandas.DataFrame` with the label of every axis, `seed`, `folder`, `is_complete`, and, where a run is
            complete, `rounds`, `test_score` and `validation_score` (fractions).

        Example:
            >>> load_study("demo").frame("runs/demo").groupby("method")["test_score"].mean()  # doctest: +SKIP
        """
        import pandas as pd

        rows = []
        for planned in self.runs:
            directory = RunDirectory(Path(out) / planned.folder)
            summary = directory.summary if directory.is_complete else {}
            scores = {key: summary.get(key) for key in ("rounds", "test_score", "validation_score")}
            head = {**planned.labels, "seed": planned.config.seed, "folder": planned.folder}
            rows.append({**head, "is_complete": directory.is_complete, **scores})
        return pd.DataFrame(rows)

    def write(self, out: Path) -> None:
        """Write the list of runs, from which a report takes their folders and names."""
        entries = [
            {"folder": run_.folder, "variant": run_.variant, "labels": dict(run_.labels), "run_id": run_.config.run_id}
            for run_ in self.runs
        ]
        known = out / "study.json"
        if known.exists() and '"study"' not in known.read_text(errors="replace"):
            raise RunDirectoryError(
                f"{known} is not the list of a study's runs and is not overwritten; choose another `out`"
            )
        content = json.dumps({"study": self.name, "rank": self.rank, "runs": entries}, indent=2) + "\n"
        try:
            out.mkdir(parents=True, exist_ok=True)
            write_whole(out / "study.json", content.encode())
        except OSError as error:
            raise RunDirectoryError(f"{out} cannot be written ({error}); choose another `out`") from None


def load_study(path: str | Path, overrides: Sequence[str] = (), *, allow: Sequence[str | Path] = ()) -> Study:
    """Read a study: a base configuration and axes, with one run for each combination.

    Args:
        path: A YAML file with `base` and `axes`, optionally `changes`, `rank` and `plan`.
        overrides: Changes in the form `key=value` to the base, or `axes.key=value` to an axis.
        allow: Modules, packages or folders whose code the study may name, as in `load`.

    Returns:
        The study, with every configuration parsed.

    Raises:
        ConfigError: An error in the file or in one of the configurations; the message names the axis and the label.

    Example:
        >>> from pathlib import Path
        >>> from fedreuse import load_study
        >>> axes = "{method: {plain: {method: fedavg}, pulled: {method: fedprox}}}"
        >>> _ = Path("study.yaml").write_text("{base: {task: {name: digits}}, axes: " + axes + "}")
        >>> [planned.variant for planned in load_study("study.yaml", ["rounds.count=10"]).runs]
        ['plain', 'pulled']
    """
    allow_imports(allow)
    file = find_config(path)
    return expand(read_yaml(file), file.stem, file.parent, overrides)


def expand(plain: Mapping[str, Any], name: str, folder: Path = Path(), overrides: Sequence[str] = ()) -> Study:
    """Expand every combination of the axes to a parsed configuration; an error names its axis and label."""
    plain = with_overrides(plain, [override for override in overrides if override.startswith(_AXES)])
    axes = _axes(plain, name, folder)
    for key in plain:
        if key not in _KEYS:
            raise ConfigError(f"study {name}: {key}: unknown key; {suggest(str(key), _KEYS)}")
    of_base = [override for override in overrides if not override.startswith(_AXES)]
    base = with_overrides(_base(plain, name, folder), of_base)
    runs = [
        _planned(base, dict(zip(axes, point, strict=True)), name)
        for point in product(*(axis.items() for axis in axes.values()))
    ]
    _require_distinct(runs, name)
    return Study(name, tuple(runs), _rank(plain, name), _plan(plain, name))


def _planned(base: Mapping[str, Any], point: Mapping[str, tuple[str, Any]], name: str) -> StudyRun:
    labels = {axis: label for axis, (label, _) in point.items()}
    changed: Any = base
    for _, changes in point.values():
        changed = with_changes(changed, changes)
    try:
        return StudyRun(labels, load(changed))
    except ConfigError as error:
        at = ", ".join(f"{axis} '{label}'" for axis, label in labels.items())
        raise ConfigError(f"study {name}, {at}: {error}") from None


def _base(plain: Mapping[str, Any], name: str, folder: Path) -> Mapping[str, Any]:
    base, changes = plain.get("base"), plain.get("changes") or {}
    if isinstance(base, str):
        base = read_yaml(folder / base)
    if not isinstance(base, Mapping):
        raise ConfigError(
            f"study {name}: base: a configuration, or the path of one beside the study, expected; got {base!r}"
        )
    if not isinstance(changes, Mapping):
        raise ConfigError(f"study {name}: changes: keys of the base with new values expected; got {changes!r}")
    return with_changes(base, tree_of(changes.items(), f"study {name}, changes: "))


def _rank(plain: Mapping[str, Any], name: str) -> str | None:
    rank = plain.get("rank")
    if rank is not None and rank not in _RANKS:
        raise ConfigError(f"study {name}: rank: test or validation expected, got {rank!r}")
    return rank


def _plan(plain: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    plan = plain.get("plan")
    if plan is not None and not isinstance(plan, Mapping):
        raise ConfigError(f"study {name}: plan: a mapping with contrasts expected, got {plan!r}")
    return plan


def _axes(plain: Mapping[str, Any], name: str, folder: Path) -> dict[str, dict[str, Any]]:
    axes = plain.get("axes")
    if not isinstance(axes, Mapping) or not axes:
        raise ConfigError(
            f"study {name}: axes: at least one expected, for example {{seed: [101, 202]}}; got {axes!r} "
            "(a configuration of one run is started with `fedreuse run`)"
        )
    labelled = {}
    for axis, given in axes.items():
        where = f"study {name}, axes.{axis}"
        labelled[str(axis)] = points(str(axis), _continued(str(axis), given, folder, where), where)
    return labelled


def _continued(axis: str, given: Any, folder: Path, where: str) -> Any:
    """Resolve `from` in an axis: labels of the other study's axis, replaced or extended by the ones given here."""
    if not isinstance(given, Mapping) or _FROM not in given:
        return given
    if not isinstance(given[_FROM], str):
        raise ConfigError(f"{where}.{_FROM}: the path of another study expected, got {given[_FROM]!r}")
    other = folder / given[_FROM]
    axes = read_yaml(other).get("axes")
    if not isinstance(axes, Mapping) or not isinstance(axes.get(axis), Mapping):
        raise ConfigError(f"{where}.{_FROM}: {other} has no axis '{axis}' with labels")
    return {**axes[axis], **{label: changes for label, changes in given.items() if label != _FROM}}


def _require_distinct(runs: Sequence[StudyRun], name: str) -> None:
    seen: dict[str, StudyRun] = {}
    for planned in runs:
        twin = seen.setdefault(planned.config.run_id, planned)
        if twin is not planned:
            raise ConfigError(
                f"study {name}: '{twin.title}' and '{planned.title}' are the same configuration; "
                "let each label change something, or drop one"
            )
