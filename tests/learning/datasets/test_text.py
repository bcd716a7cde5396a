"""Text by author, as a federation."""

from __future__ import annotations

from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from torch import nn

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.data import datasets
from fedreuse.learning.datasets.text import Text
from fedreuse.learning.targets import IGNORED
from fedreuse.runs.federation import assemble
from fedreuse.runs.launch import run
from tests.learning.files.saved_tokenizer import WORDS, save_tokenizer
from tests.learning.files.written import arrays, write
from tests.tiny import tiny


def plays(path: Path) -> Path:
    """Three roles, each with lines of its own."""
    lines = [f"{word} said number {number}, and then some more words. " * 2 for number in range(12) for word in "abc"]
    return write(path, pa.table({"line": lines, "role": ["Ann", "Bo", "Cy"] * 12}))


class Next(nn.Module):
    """The mean of embedded characters, mapped to the next one."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(num_classes, 4)
        self.fc = nn.Linear(4, num_classes)

    def forward(self, tokens):  # type: ignore[no-untyped-def]
        return self.fc(self.embed(tokens).mean(1))


def test_roles_are_clients_and_a_run_trains_on_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec: dict[str, Any] = {
        "name": "text", "path": str(plays(tmp_path / "plays.csv")), "text_column": "line", "client_column": "role",
        "length": 10, "clients": 3, "partition": "natural",
    }  # fmt: skip
    (tmp_path / "own_text.py").write_text("from tests.learning.datasets.test_text import Next\n")
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_text"])
    config = tiny(task=spec, network={"name": "own_text:Next"}, rounds={"count": 1, "cohort": 3})
    prepared = config.task.prepare(1)
    assert prepared.data.num_classes == Text("x").num_tokens == 98
    assert prepared.data.train.inputs.dtype == np.int64
    assert prepared.data.client_names is not None
    assert prepared.data.client_names.tolist() == ["Ann", "Bo", "Cy"]
    assert run(config, tmp_path / "run").summary["test_examples"] == len(prepared.test)


class Each(Next):
    """Every embedded character, mapped to the one that follows."""

    def forward(self, tokens):  # type: ignore[no-untyped-def]
        return self.fc(self.embed(tokens))


def test_a_language_model_is_measured_by_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec: dict[str, Any] = {
        "name": "text", "path": str(plays(tmp_path / "plays.csv")), "text_column": "line", "client_column": "role",
        "length": 16, "clients": 3, "partition": "natural", "target": "sequence", "metric": "log_likelihood",
        "metrics": ["accuracy", "perplexity"], "validation": 0.4,
    }  # fmt: skip
    (tmp_path / "own_language.py").write_text("from tests.learning.datasets.test_text import Each\n")
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_language"])
    config = tiny(task=spec, network={"name": "own_language:Each"}, rounds={"count": 2, "cohort": 3})
    held = config.task.prepare(config.seed)
    assert held.data.kind == "tokens"
    assert (held.data.train.labels == IGNORED).any()
    row = run(config, tmp_path / "run").metrics()[-1]
    assert row["validation_perplexity"] == pytest.approx(exp(row["validation_loss"]), rel=1e-5)
    assert row["validation_score"] == pytest.approx(-row["validation_loss"], rel=1e-5)
    federation = assemble(config)
    places = federation.prepared.training.indices
    found, labels = federation.trainer.evaluate(federation.initial, index=places), held.data.train.labels[places]
    assert found.examples == np.count_nonzero(labels != IGNORED) < labels.size


def test_labels_by_author(tmp_path: Path) -> None:
    table = pa.table({"text": ["good day", "bad day", "good night"] * 4, "label": ["+", "-", "+"] * 4})
    data = Text(
        str(write(tmp_path / "t.parquet", table)), target="label", tokens="words", length=4, duplicates="keep"
    ).load(None)
    assert (data.num_classes, data.shape) == (2, (4,))
    assert data.train.inputs[:, 2:].max() == 0  # two words and padding


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 0}, r"text\.length must be at least 1"),
        ({"stride": 0}, r"text\.stride must be at least 1"),
        ({"buckets": 0}, r"text\.buckets must be at least 1"),
        ({"test": 1}, r"text\.test must be above 0 and below 1"),
        ({"classes": 3}, r"text\.classes is for target: label"),
        ({"seed": -1}, r"text\.seed must not be negative"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        datasets.parse({"name": "text", "path": "v.csv", **changes}, "task")


def test_arrays_are_no_texts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="texts are read from CSV, Parquet or saved Hugging Face tables"):
        Text(str(arrays(tmp_path / "a.npz"))).load(None)


def test_the_tokens_of_a_pretrained_model(tmp_path: Path) -> None:
    folder = save_tokenizer(tmp_path / "model")
    lines = ["the red cow the", "blue the"] * 4
    path = str(write(tmp_path / "t.parquet", pa.table({"text": lines, "label": [0, 1] * 4})))
    spec: dict[str, Any] = {"duplicates": "keep", "length": 4, "tokenizer": str(folder), "test": 0.5}
    data = Text(path, target="sequence", **spec).load(None)
    pad = WORDS["[PAD]"]
    assert (data.num_tokens, data.padding) == (len(WORDS), pad)
    first, short = data.train.inputs[:2].tolist(), data.train.labels[:2].tolist()
    assert first == [[0, 5, 7, 0], [6, 0, pad, pad]]
    assert short == [[5, 7, 0, IGNORED], [0, IGNORED, IGNORED, IGNORED]]  # 0 is a word, and counts
    with pytest.raises(DataError, match=r"row 0 has 6 tokens .* more than task\.length 4; .*task\.too_long: cut"):
        Text(path, target="label", **spec).load(None)
    cut = Text(path, target="label", too_long="cut", **spec).load(None)
    assert cut.train.inputs[:2].tolist() == [[2, 0, 5, 3], [2, 6, 0, 3]]
    (folder / "tokenizer_config.json").unlink()
    bare = Text(path, target="sequence", **spec).load(None)
    assert bare.padding is not None
    assert bare.padding < 0
    assert bare.train.inputs[1].tolist() == [6, 0, 0, 0]  # numbers that an embedding has
    assert bare.train.labels[1].tolist() == [0, IGNORED, IGNORED, IGNORED]
    with pytest.raises(ConfigError, match="tokenizer takes the place of tokens"):
        Text(path, tokens="words", tokenizer=str(folder))


def test_a_network_that_looks_for_other_padding_is_refused(tmp_path: Path) -> None:
    lines = ["the red cow the", "blue the"] * 6
    path = str(write(tmp_path / "t.parquet", pa.table({"text": lines, "label": [0, 1] * 6, "who": ["a", "b"] * 6})))
    task = {"name": "text", "path": path, "tokenizer": str(save_tokenizer(tmp_path / "model")), "duplicates": "keep",
            "target": "label", "length": 6, "client_column": "who", "clients": 2, "partition": "natural"}  # fmt: skip
    network = {"name": "transformer", "width": 4, "layers": 1, "heads": 1, "output": "mean", "tokens": len(WORDS)}
    with pytest.raises(ConfigError, match=r"it takes token 0 for padding, but texts are filled up with token 4"):
        assemble(tiny(task=task, network=network, rounds={"cohort": 2}))
