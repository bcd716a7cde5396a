"""Tables 3 and 4 of the paper, data and selection of settings, compared with those of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.core.bounded import read_arrays
from fedreuse.lab.paper.published import NAMES, published
from fedreuse.report.tables import Table
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.report.results import Result

__all__ = ["data_table", "tuning_table"]

_MODELS = {"cnn": "CNN", "resnet18": "ResNet-18"}


def data_table(results: Sequence[Result]) -> Table:
    """Return table 3: datasets and networks of the paper and of the runs."""
    rows = []
    for dataset, known in published()["data"].items():
        runs = [run for run in results if run.dataset == dataset]
        facts = [_facts(run) for run in runs]
        models = _values(_MODELS.get(run.network, run.network) for run in runs)
        counts = [(_values(fact[key] for fact in facts), f"{known[key]:,}") for key in ("classes", "train", "test")]
        rows.append((NAMES[dataset], *(cell for pair in counts for cell in pair), models, known["model"]))
    columns = ("Classes", "Train", "Test", "Model")
    headers = ("Dataset", *(f"{name}\n{side}" for name in columns for side in ("runs", "paper")))
    legend = (
        "Train: examples of all clients, including those held out for validation. An export does not hold the "
        "partition, so Train of its runs is unknown (-)."
    )
    return Table("Table 3 of the paper: datasets and models", headers, tuple(rows), legend, is_grouped=True)


def tuning_table(results: Sequence[Result]) -> Table:
    """Return table 4: how the paper selected its settings, its selection, and the settings of the runs."""
    rows = []
    for known in published()["tuning"]:
        runs = [run for run in results if run.dataset in NAMES and known["method"] in (None, run.method)]
        paper = "; ".join(f"{_short_key(key)} {value:g}" for key, value in known["selection"].items())
        mine = "; ".join(
            f"{_short_key(key)} {_values(_setting(run.config, key) for run in runs)}" for key in known["selection"]
        )
        rows.append((known["group"], known["evidence"], known["budget"], known["rule"], paper, mine if runs else "-"))
    headers = ("Group", "Development evidence", "Budget", "Search / rule", "Frozen selection\npaper", "Settings\nruns")
    legend = (
        "Evidence, budget and rule are the paper's; dev-test: a test set that was used during development. A setting "
        "with several values differs between the runs; -: no run has it."
    )
    return Table("Table 4 of the paper: selection of settings", headers, tuple(rows), legend)


def _facts(result: Result) -> dict[str, str | None]:
    """Return the numbers of classes, training and test examples of a run, as far as its directory has them."""
    directory = RunDirectory.open(result.directory)
    indices = [directory.file(f"{name}.npz") for name in ("partition", "validation")]
    counts = {
        "classes": directory.provenance.get("num_classes"),
        "train": sum(map(_num_indices, indices)) if all(file.exists() for file in indices) else None,
        "test": directory.summary.get("test_examples"),
    }
    return {key: None if count is None else f"{count:,}" for key, count in counts.items()}


def _num_indices(file: Path) -> int:
    return len(read_arrays(file, ["indices"])["indices"])


def _setting(config: Mapping[str, Any], key: str) -> str | None:
    """Return a setting by its dotted key; None if the configuration does not have it."""
    value: Any = config
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return None if value is None else f"{value:g}"


def _short_key(key: str) -> str:
    """Return a dotted key without the prefixes that all settings share."""
    return (
        key.removeprefix("local.").removeprefix("method.").replace("optimizer.", "").replace("uplink.update.codec.", "")
    )


def _values(values: Iterable[str | None]) -> str:
    """Return every value once, in order of appearance."""
    return " / ".join(dict.fromkeys(value for value in values if value is not None)) or "-"
