"""The paper's tables 3 and 4, what was run and how settings were chosen, with those of runs beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.lab.paper.published import NAMES, published
from fedreuse.report.tables import Table
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.report.results import Result

__all__ = ["data_table", "tuning_table"]

_MODELS = {"cnn": "CNN", "resnet18": "ResNet-18"}


def data_table(results: Sequence[Result]) -> Table:
    """Table 3: datasets and networks; of runs, what their directories tell."""
    rows = []
    for dataset, known in published()["data"].items():
        here = [one for one in results if one.dataset == dataset]
        found = [_facts(one) for one in here]
        models = _values(_MODELS.get(one.network, one.network) for one in here)
        counts = [(_values(one[key] for one in found), f"{known[key]:,}") for key in ("classes", "train", "test")]
        rows.append((NAMES[dataset], *(cell for pair in counts for cell in pair), models, known["model"]))
    columns = ("Classes", "Train", "Test", "Model")
    headers = ("Dataset", *(f"{name}\n{side}" for name in columns for side in ("runs", "paper")))
    legend = (
        "Train: examples that were dealt to clients, those held out for validation included. "
        "An export does not hold the partition, so that of its runs Train is unknown (-)."
    )
    return Table("Table 3 of the paper: datasets and models", headers, tuple(rows), legend, is_grouped=True)


def tuning_table(results: Sequence[Result]) -> Table:
    """Table 4: how the paper chose its settings, its choice, and the settings of the runs."""
    rows = []
    for known in published()["tuning"]:
        here = [one for one in results if one.dataset in NAMES and known["method"] in (None, one.method)]
        paper = "; ".join(f"{_last(key)} {value:g}" for key, value in known["selection"].items())
        mine = "; ".join(
            f"{_last(key)} {_values(_setting(one.config, key) for one in here)}" for key in known["selection"]
        )
        rows.append((known["group"], known["evidence"], known["budget"], known["rule"], paper, mine if here else "-"))
    headers = ("Group", "Development evidence", "Budget", "Search / rule", "Frozen selection\npaper", "Settings\nruns")
    legend = (
        "Evidence, budget and rule are the paper's; dev-test: a test split that was used during development. A setting "
        "with several values differs between the runs; - is in none of them."
    )
    return Table("Table 4 of the paper: how settings were chosen", headers, tuple(rows), legend)


def _facts(result: Result) -> dict[str, str | None]:
    """Classes, training and test examples of a run, where its directory tells them."""
    directory = RunDirectory.open(result.directory)
    indices = [directory.file(f"{name}.npz") for name in ("partition", "validation")]
    found = {
        "classes": directory.provenance.get("num_classes"),
        "train": sum(map(_dealt, indices)) if all(file.exists() for file in indices) else None,
        "test": directory.summary.get("test_examples"),
    }
    return {key: None if count is None else f"{count:,}" for key, count in found.items()}


def _dealt(file: Path) -> int:
    with np.load(file, allow_pickle=False) as arrays:
        return len(arrays["indices"])


def _setting(config: Mapping[str, Any], key: str) -> str | None:
    """A setting by its dotted key; None where the configuration has none."""
    found: Any = config
    for word in key.split("."):
        found = found.get(word) if isinstance(found, Mapping) else None
    return None if found is None else f"{found:g}"


def _last(key: str) -> str:
    """What a reader needs of a dotted key."""
    return (
        key.removeprefix("local.").removeprefix("method.").replace("optimizer.", "").replace("uplink.update.codec.", "")
    )


def _values(found: Iterable[str | None]) -> str:
    """Every value once, in the order of their coming."""
    return " / ".join(dict.fromkeys(one for one in found if one is not None)) or "-"
