"""Federated training of a model on data, from one call in Python: `federate(...).fit()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.saving import Saving
from fedreuse.config.run_config import RunConfig, load
from fedreuse.core.errors import ConfigError, RunError, require
from fedreuse.learning.files.preparation import PREPARATION_FILE
from fedreuse.methods.lean import Lean
from fedreuse.report.answer import answer, answer_table, answers
from fedreuse.report.gather import gather
from fedreuse.report.page.html import render
from fedreuse.report.page.page import page_of
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from fedreuse.runs.listeners.progress import ProgressLines
from fedreuse.studies.objects import Stored, named_network, stored_data
from fedreuse.studies.proposal import propose

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from fedreuse.core.listener import Listener
    from fedreuse.store.directory import RunDirectory

__all__ = ["Federated", "Fitted", "federate"]

_BUDGET, _ROOM = 0.05, 2.0
"""Default budget of `lean`, and its smallest multiple of the least possible one: tiny models are mostly headers."""
_PAUSE = 5.0
"""Seconds between two lines of progress where there is neither a terminal nor a notebook."""
_BATCH = 256


def federate(  # noqa: PLR0913  # the settings of a training
    model: Any = None,
    data: Any = None,
    *,
    clients: Any = None,
    label: Any = None,
    method: str | Mapping[str, Any] = "lean",
    budget: float | None = None,
    rounds: int = 60,
    lr: float | None = None,
    cohort: int | None = None,
    seed: int = 101,
    overrides: Sequence[str] = (),
    folder: str | Path = "runs",
) -> Federated:
    """Describe a federated training of a model on data; `fit` runs it.

    Args:
        model: A torch module class or a function that makes a module (`shape` and `num_classes` are passed if it has
            such parameters); a module, whose weights are the initial model; the name of a network; None: proposed by
            the data.
        data: A pandas table; a tuple of arrays or tensors (inputs, labels) or (inputs, labels, clients); a torch
            Dataset of (input, label) or (input, label, client); a mapping of client names to any of these; a path; the
            name of a dataset.
        clients: Column of the client, or one entry per example; a number: so many simulated clients with skewed
            labels; None: 10 of these.
        label: Column to predict, or the labels of an array of inputs.
        method: Method, such as `lean` or `fedavg`, or a mapping with its keys.
        budget: Bytes of `lean` as a share of dense FedAvg's, in (0, 1]. None: 0.05, or more for a tiny model.
        rounds: Number of rounds, at least 1.
        lr: Learning rate of the clients, positive. None: 0.05 for images, 0.03 for rows; `fedreuse try` searches one.
        cohort: Clients of a round. None: all, or 10 of more than 10.
        seed: Seed of initial weights, cohorts and batches.
        overrides: Further changes of the configuration as `key=value`, such as `local.epochs=2`.
        folder: Folder for data and runs.

    Returns:
        The training before it has run, with its configuration as `config`. `fit()` returns an object with `history`,
        `bytes`, `score`, `model`, `predict`, `answer` and `report`.

    Raises:
        UserError: The data, the model or a setting cannot be used; the message names the remedy.

    Example:
        >>> import numpy as np
        >>> from fedreuse import federate
        >>> inputs = np.sin(np.arange(800, dtype=np.float32)).reshape(200, 4)
        >>> task = federate("mlp", (inputs, inputs[:, 0] > 0), clients=np.arange(200) % 4, rounds=2, method="fedavg")
        >>> task.config.task.clients
        4
        >>> fitted = task.fit(progress=False)
        >>> fitted.history.index.tolist(), fitted.bytes.both
        ([1, 2], 0.0)
    """
    require(rounds >= 1, "rounds must be at least 1", rounds)
    if data is None:
        raise ConfigError("data: a table, arrays, a torch Dataset, a path or the name of a dataset is needed")
    network, is_local = named_network(model)
    stored = stored_data(data, label, clients, Path(folder) / "data")
    proposal = propose(stored.task, network)
    local = proposal.base["local"]
    rate = proposal.rates[2] if lr is None else lr
    base = {
        **{key: value for key, value in proposal.base.items() if key != "development_seeds"},
        "local": {**local, "optimizer": {**local["optimizer"], "lr": rate}},
        "rounds": {"count": rounds, "cohort": cohort or proposal.base["rounds"]["cohort"],
                   "evaluate_every": max(1, rounds // 20)},
        "seed": seed,
        **({"executor": {"name": "serial"}} if is_local else {}),
    }  # fmt: skip
    chosen: dict[str, Any] = {"name": method} if isinstance(method, str) else dict(method)
    if budget is not None:
        if chosen["name"] != "lean":
            raise ConfigError(f"budget: only lean has a budget of bytes, and method is {chosen['name']}; drop it")
        chosen["budget"] = budget
    elif chosen == {"name": "lean"}:
        plain = load(base, overrides)
        chosen["budget"] = min(1.0, max(_BUDGET, _ROOM * Lean().smallest_budget(plain.scope(assemble(plain).schema))))
    return Federated(load({**base, "method": chosen}, overrides), stored, Path(folder))


@dataclass(frozen=True)
class Federated:
    """A federated training before it has run.

    Args:
        config: The configuration; `fedreuse run` and `fedreuse deploy` take it as a file (`save`).
        data: The stored data, and what was decided about them.
        folder: Folder of the runs.
    """

    config: RunConfig
    data: Stored
    folder: Path

    @property
    def place(self) -> Path:
        """The run directory; its name has a digest of the configuration."""
        return self.folder / self.config.label

    def fit(self, progress: bool = True, listeners: Sequence[Listener] = ()) -> Fitted:
        """Run the training, or continue it if it was interrupted; a complete one is read, not repeated.

        Args:
            progress: Whether to show a progress bar, in terminals and notebooks.
            listeners: Objects that are notified of the run's events; each may stop the run.

        Raises:
            UserError: The configuration does not fit the data; the message names the remedy.
            RunError: The run cannot continue, or a listener stopped it; `fit` continues from the stored rounds.
        """
        shown = [ProgressLines(pause_seconds=_PAUSE).start()] if progress else []
        directory = run(self.config, self.place, resume=True, listeners=[*listeners, *shown])
        if not directory.is_complete:
            raise RunError(
                f"the run was stopped ({directory.stop_reason}); fit() continues from round {_last(directory)}"
            )
        return Fitted(directory, self)

    def save(self, path: str | Path) -> Path:
        """Write the configuration as a YAML file.

        Raises:
            ConfigError: The model is known to this session only; move its class to a module and import it.
        """
        import yaml

        plain = self.config.to_plain()
        if plain["network"]["name"].startswith("fedreuse_session:"):
            raise ConfigError(
                "the model is defined in this session; move its class to a module, and import it from there"
            )
        target = Path(path)
        target.write_text(yaml.safe_dump(plain, sort_keys=False), encoding="utf-8")
        return target


def _last(directory: RunDirectory) -> int:
    return len(directory.metrics())


@dataclass(frozen=True)
class Fitted:
    """A completed federated training.

    Args:
        directory: The run directory, with ledger, events, configuration and model.
        origin: The training that was run.
    """

    directory: RunDirectory
    origin: Federated

    @property
    def history(self) -> pd.DataFrame:
        """Scores, bytes, outcomes and seconds by round."""
        frame: pd.DataFrame = self.directory.frame()
        return frame

    @cached_property
    def bytes(self) -> Saving:
        """Bytes of all messages in each direction, of dense FedAvg, and the saving `both` (boundary `messages`)."""
        return Saving.of(self.directory.traffic()["messages"])

    @property
    def score(self) -> float:
        """Score on the test split."""
        found: float = self.directory.summary["test_score"]
        return found

    @cached_property
    def model(self) -> nn.Module:
        """The trained module, in evaluation mode. It takes normalised inputs; `predict` takes raw ones."""
        from fedreuse.runs.trained import trained_network

        return trained_network(self.directory)

    def predict(self, data: Any) -> np.ndarray:
        """Return classes, numbers or flags for new examples in the form of the training data, without labels.

        Args:
            data: A pandas table if the training data were one; else an array or tensor of inputs.

        Raises:
            DataError: A column is missing, or holds values that the training data had not.
        """
        import torch

        inputs, prepared = torch.as_tensor(self._inputs(data)), assemble(self.origin.config).prepared.data
        with torch.no_grad():
            batches = [
                self.model(_normalised(batch, prepared))
                for batch in torch.tensor_split(inputs, -(-len(inputs) // _BATCH))
            ]
        found: np.ndarray = torch.cat(batches).numpy()
        if prepared.kind == "numbers":
            return found[:, 0] if found.shape[1] == 1 else found
        if prepared.kind == "flags":
            return found > 0
        classes: np.ndarray = self._class_names(prepared.num_classes)[found.argmax(1)]
        return classes

    def _inputs(self, data: Any) -> np.ndarray:
        place = self.origin.data.preparation
        if place is None:
            array = np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)
            return array.astype(np.float32) if array.dtype == np.float64 else array
        import pyarrow as pa

        from fedreuse.core.bounded import read_json
        from fedreuse.learning.files.applying import prepared_inputs

        record = read_json(place / PREPARATION_FILE)
        return prepared_inputs(record, pa.Table.from_pandas(data, preserve_index=False))

    def _class_names(self, count: int) -> np.ndarray:
        if self.origin.data.names is not None:
            return self.origin.data.names
        known = self.origin.data.task.get("classes")
        return np.array(known) if isinstance(known, list | tuple) else np.arange(count)

    def answer(self, against: Fitted | None = None) -> str:
        """Return bytes and score in sentences, compared with another training, or with computed dense FedAvg."""
        runs = gather([self.directory.path, *([against.directory.path] if against is not None else [])])
        reference = None if against is None else runs[-1].variant
        return answer(answers(runs, reference)[0])

    def report(self, *others: Fitted, path: str | Path | None = None) -> Path:
        """Write an HTML report of this training, and of others beside it.

        Args:
            others: Trainings to compare with.
            path: The file; None: `report.html` in the folder of the runs.
        """
        target = Path(path) if path is not None else self.origin.folder / "report.html"
        places = [fitted.directory.path for fitted in (*others, self)]
        target.write_text(render(page_of(places, "Federated training")), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        """Return the answer in sentences."""
        return f"<Fitted {self.directory.path}: {self.answer()}>"

    def _repr_html_(self) -> str:
        """Return sentence, table and learning curve for a notebook."""
        table = answer_table(gather([self.directory.path]))
        assert table is not None  # the run is complete
        heads = "".join(f"<th>{escape(head)}</th>" for head in table.headers)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
        shown = f"<p><b>{escape(self.answer())}</b></p><table><tr>{heads}</tr>{rows}</table>"
        return f"{shown}{_curve(self.directory)}<p>{escape(table.legend)} {escape(str(self.directory.path))}</p>"


def _normalised(inputs: Any, data: Any) -> Any:
    """Normalise a batch as the trainer does."""
    import torch

    if inputs.dtype == torch.uint8:
        inputs = inputs.float() / 255
    elif not inputs.is_floating_point() or not data.is_scaled:
        return inputs
    per_channel = (1, -1, *[1] * (inputs.dim() - 2))
    return (inputs - torch.tensor(data.mean).view(per_channel)) / torch.tensor(data.std).view(per_channel)


def _curve(directory: RunDirectory) -> str:
    """Return the validation score over rounds as a small SVG; empty with fewer than two evaluations."""
    rounds, scores = directory.metric("validation_score")
    if len(rounds) < 2:
        return ""
    width, height = 360, 90
    low, high = float(scores.min()), float(scores.max())
    across = 8 + (width - 16) * (rounds - rounds[0]) / (rounds[-1] - rounds[0])
    down = height - 8 - (height - 16) * (scores - low) / ((high - low) or 1.0)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
    text = f"validation score from {low:.3g} to {high:.3g} over {rounds[-1]} rounds"
    line = f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/>'
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="{text}">{line}</svg><br><small>{text}</small>'
    )
