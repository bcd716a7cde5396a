"""Accuracy of last models on training examples, class by class, for docs/findings/paper.md.

python -m benchmarks.last_models RUNS... --out docs/bench/last-models.json

A row per complete run in the named folders, which must hold models (exports in results/ do not): its last model on all
examples that its clients train on; the test split stays sealed. With `--kept` a row for each model of `keep.models`
instead. Lists have a number per class:

score, score_again    share of examples that are classified correctly: by the model as it was merged, and with running
                      statistics computed again as the mean over batches of all clients' examples, in random order
recall, recall_again  the same, of each class
share                 share of the class among these examples
cohort_share          among those of the clients of the last round
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.numpy import load_file
from torch.nn.modules.batchnorm import _BatchNorm

from fedreuse.config.run_config import load
from fedreuse.engine.schedule import Schedule
from fedreuse.lab.bench.results import made_now
from fedreuse.learning.program import with_values
from fedreuse.report.results import read_runs
from fedreuse.runs.federation import assemble
from fedreuse.store.directory import RunDirectory, no_runs

if TYPE_CHECKING:
    from torch import nn

    from fedreuse.lab.bench.results import Row
    from fedreuse.learning.trainer import Trainer
    from fedreuse.report.results import Result

__all__ = ["looked_at", "main", "recalls", "renew_statistics"]

_BATCH = 500


def looked_at(result: Result, kept: int | None = None) -> Row:
    """The row of one complete run: of its last model, or of the one that was kept after a round."""
    directory = RunDirectory.open(result.directory)
    directory.verify()
    last = result.rounds if kept is None else kept
    arrays = directory.model() if kept is None else load_file(directory.path / f"models/round-{kept:05d}.safetensors")
    federation = assemble(load(directory.config))
    module, trainer, index = federation.network.module, federation.trainer, federation.prepared.training
    with_values(module, arrays)
    labels, examples = federation.prepared.data.train.labels, index.indices
    cohort = Schedule.load(directory.path / "schedule.json").cohort(last).clients
    merged = recalls(module, trainer, examples)
    renew_statistics(module, trainer, examples)
    again = recalls(module, trainer, examples)
    share = _shares(labels[examples], len(merged))
    return {
        "dataset": result.dataset, "network": result.network, "variant": result.variant, "seed": result.seed,
        "round": last, "run_id": result.run_id, "examples": len(examples),
        "score": float(merged @ share), "score_again": float(again @ share),
        "recall": merged.tolist(), "recall_again": again.tolist(), "share": share.tolist(),
        "cohort_share": _shares(labels[examples[np.isin(index.owners, cohort)]], len(merged)).tolist(),
    }  # fmt: skip


def recalls(module: nn.Module, trainer: Trainer, examples: np.ndarray) -> np.ndarray:
    """Share of each class that is classified correctly; 0 for a class without examples."""
    right, all_of = np.zeros(trainer.num_classes), np.zeros(trainer.num_classes)
    module.eval()
    with torch.inference_mode():
        for start in range(0, len(examples), _BATCH):
            inputs, labels = trainer.batch(examples[start : start + _BATCH], None)
            wanted, predicted = labels.numpy(), module(inputs).argmax(1).numpy()
            all_of += np.bincount(wanted, minlength=len(all_of))
            right += np.bincount(wanted[wanted == predicted], minlength=len(all_of))
    return right / np.maximum(all_of, 1)


def renew_statistics(module: nn.Module, trainer: Trainer, examples: np.ndarray) -> None:
    """Running statistics become means over batches; weights stay as they are."""
    layers = [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a mean in which every batch counts the same
        layer.train()
    mixed = np.random.default_rng(0).permutation(examples)  # examples lie client by client
    with torch.no_grad():
        for some in np.array_split(mixed, max(1, len(mixed) // _BATCH)):
            module(trainer.batch(some, None)[0])


def _shares(labels: np.ndarray, num_classes: int) -> np.ndarray:
    return np.bincount(labels, minlength=num_classes) / len(labels)


def main(words: Sequence[str] | None = None) -> None:
    """Look at every complete run of the folders, and store what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs with their models")
    parser.add_argument("--out", type=Path, default=Path("bench/last-models.json"), help="the results file")
    parser.add_argument("--kept", action="store_true", help="the models of `keep.models` instead of the last one")
    given = parser.parse_args(words)
    rows: list[Row] = []
    for result in (one for place in given.runs for one in read_runs(place) if one.is_complete):
        rounds = load(RunDirectory.open(result.directory).config).keep.models if given.kept else (None,)
        rows.extend(looked_at(result, kept) for kept in rounds)
        print(f"{result.dataset} {result.variant}, seed {result.seed}", file=sys.stderr, flush=True)  # noqa: T201 - a sign of life
    if not rows:
        raise no_runs(*given.runs)
    made_now("last-models", {"batch": _BATCH}, rows).write(given.out)


if __name__ == "__main__":
    main()
