"""A task: how it is read and written, what becomes of the data, and that the test split stays sealed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.learning.data import digest_of
from fedreuse.learning.datasets.synthetic import Synthetic
from fedreuse.learning.partitions.iid import Iid
from fedreuse.learning.task import Task, parse_task

OWN = """
from dataclasses import dataclass
import numpy as np
from fedreuse.learning.data import Data, Split

def split(first, count):
    inputs = np.arange(first, first + count, dtype=np.float32)[:, None]
    return Split(inputs, np.arange(count, dtype=np.int64) % 2)

@dataclass(frozen=True)
class Own:
    examples: int = 60
    has_validation: bool = True

    def load(self, folder):
        official = split(500, 8) if self.has_validation else None
        return Data("own", 2, split(0, self.examples), split(900, 10), official)

class Loose:
    def load(self, folder):
        return None
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's."""
    (tmp_path / "own_datasets.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_datasets", "nowhere"])
    return "own_datasets"


def small(**parts: Any) -> Task:
    spec = {"name": "synthetic", "examples": 100, "test_examples": 20, "classes": 2, "clients": 4}
    return parse_task({**spec, **parts}, "task")


def test_keys_of_the_dataset_stand_beside_those_of_the_task() -> None:
    task = small(partition="iid", validation=0.2)
    assert task.dataset == Synthetic(examples=100, test_examples=20, classes=2)
    assert (task.clients, task.partition, task.validation) == (4, Iid(), 0.2)
    with pytest.raises(FrozenInstanceError):
        task.clients = 5  # type: ignore[misc]


def test_it_is_written_back_with_every_default() -> None:
    task = small()
    plain = task.to_plain()
    assert next(iter(plain)) == "name"
    assert plain["partition"]["name"] == "dirichlet"
    assert plain["partition"]["alpha"] == 0.5
    assert plain["loss"] == {"name": "cross_entropy", "label_smoothing": 0.0}
    assert plain["metric"] == {"name": "accuracy"}
    assert plain["separation"] == 4.0
    assert plain["validation"] == 0.1
    assert parse_task(plain, "task") == task


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("digits", r"task: a mapping expected, for example \{name: digits, clients: 20\}; got 'digits'"),
        ({"clients": 3}, r"task: a name is missing; name a dataset, for example \{name: digits\}"),
        ({"name": 7}, r"task: a name is missing"),
        ({"name": "digit"}, r"task: 'digit' is not one of the datasets; did you mean 'digits'\?"),
        ({"name": "digits", "client": 3}, r"task\.client: unknown key; did you mean 'clients'\?"),
        ({"name": "synthetic", "exampels": 3}, r"task\.exampels: unknown key; did you mean 'examples'\?"),
        ({"name": "digits", "clients": 0}, r"task\.clients must be at least 1, got 0"),
        ({"name": "digits", "clients": "many"}, r"task\.clients: .*integer.*, got 'many'"),
        ({"name": "digits", "clients": 9, "limit": 8}, r"task\.limit must not be smaller than clients, got 8"),
        (
            {"name": "digits", "clients": 9, "limit": 90, "partition": {"name": "index_file", "path": "a.json"}},
            r"task\.limit and the partition index_file would both select",
        ),
        ({"name": "digits", "validation": 1}, r"task\.validation must be in \[0, 1\), got 1"),
        ({"name": "digits", "validation": -0.1}, r"task\.validation must be in \[0, 1\), got -0\.1"),
        ({"name": "digits", "partition": "dirichlt"}, r"task\.partition: 'dirichlt' .*did you mean 'dirichlet'\?"),
        ({"name": "digits", "loss": {"name": "cross_entropy", "smooth": 1}}, r"task\.loss\.smooth: unknown key"),
    ],
)
def test_what_is_refused(spec: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_task(spec, "task")


def test_everybody_holds_out_a_share_and_the_rest_is_for_training() -> None:
    prepared = small(validation=0.25, partition="iid").prepare(1)
    # 100 examples over 4 clients: 25 each, of which round(6.25) = 6 are held out
    assert prepared.training.sizes.tolist() == [19] * 4
    assert prepared.validation.sizes.tolist() == [6] * 4
    for client in range(4):
        assert not set(prepared.training.of(client)) & set(prepared.validation.of(client))
    both = np.concatenate([prepared.training.indices, prepared.validation.indices])
    assert sorted(both.tolist()) == list(range(100))
    assert prepared.has_validation
    assert prepared.official_validation is None


def test_the_seed_decides_the_federation_and_validation_does_not_move_it() -> None:
    first, again, other = (small().prepare(seed) for seed in (1, 1, 2))
    assert first.training.digest == again.training.digest != other.training.digest
    assert first.validation.digest == again.validation.digest != other.validation.digest
    assert first.digest == other.digest  # the data are the same
    whole = small(validation=0).prepare(1)
    for client in range(4):
        kept = np.concatenate([first.training.of(client), first.validation.of(client)])
        assert sorted(kept.tolist()) == sorted(whole.training.of(client).tolist())


def test_a_limit_takes_fewer_examples_in_the_same_proportions_and_leaves_the_test_split_alone() -> None:
    limited, again, other = (small(limit=30, validation=0.2, partition="iid").prepare(seed) for seed in (1, 1, 2))
    used = np.sort(np.concatenate([limited.training.indices, limited.validation.indices]))
    assert len(np.unique(used)) == len(used) == 30
    labels = limited.data.train.labels
    shares = 0.3 * np.bincount(labels)
    assert (np.abs(np.bincount(labels[used]) - shares) < 1).all()
    assert limited.training.digest == again.training.digest != other.training.digest
    assert limited.digest == small().prepare(1).digest  # the data are the same
    assert len(limited.test) == 20


def test_a_limit_of_everything_is_no_limit() -> None:
    assert small(limit=100).prepare(1).training.digest == small().prepare(1).training.digest
    with pytest.raises(ConfigError, match=r"task\.limit is 101, but there are 100 training examples; lower it"):
        small(limit=101).prepare(1)


def test_without_validation_nothing_can_be_selected() -> None:
    prepared = small(validation=0).prepare(1)
    assert not prepared.has_validation
    assert len(prepared.validation.indices) == 0
    assert prepared.training.sizes.sum() == 100


def test_the_test_examples_are_behind_the_seal(tmp_path: Path) -> None:
    prepared = small().prepare(1)
    whole = Synthetic(examples=100, test_examples=20, classes=2).load(None)
    assert len(prepared.data.test) == 0
    assert prepared.data.test.inputs.shape == (0, 1, 8, 8)
    assert len(prepared.test) == 20
    assert prepared.digest == whole.digest  # taken before sealing
    opening = prepared.test.open(tmp_path / "opened.json", "a model")
    assert digest_of(opening.split.inputs) == digest_of(whole.test.inputs)
    with pytest.raises(RunDirectoryError, match="one run evaluates on it once"):
        prepared.test.open(tmp_path / "elsewhere.json", "a model")


def test_an_official_validation_split_is_used_instead_of_a_share(own: str) -> None:
    prepared = parse_task({"name": f"{own}:Own", "clients": 3, "validation": 0.5}, "task").prepare(1)
    assert prepared.official_validation is not None
    assert prepared.official_validation.inputs[:, 0].tolist() == list(range(500, 508))
    assert prepared.training.sizes.sum() == 60  # nobody gives anything away
    assert len(prepared.validation.indices) == 0
    assert prepared.has_validation
    assert prepared.data.validation is None  # reachable in one place only


def test_validation_0_leaves_an_official_split_alone(own: str) -> None:
    prepared = parse_task({"name": f"{own}:Own", "clients": 3, "validation": 0}, "task").prepare(1)
    assert prepared.official_validation is None
    assert not prepared.has_validation


def test_ones_own_dataset_is_read_and_written_by_name(own: str) -> None:
    spec = {"name": f"{own}:Own", "examples": 40, "has_validation": False, "clients": 2, "partition": "iid"}
    task = parse_task(spec, "task")
    plain = task.to_plain()
    assert plain["name"] == f"{own}:Own"
    assert plain["examples"] == 40
    assert parse_task(plain, "task") == task
    assert task.prepare(1).training.sizes.tolist() == [18, 18]  # 20 each, two of them held out


def test_ones_own_dataset_is_parsed_strictly(own: str) -> None:
    with pytest.raises(ConfigError, match=r"task.*exampels: unknown key; did you mean 'examples'\?"):
        parse_task({"name": f"{own}:Own", "exampels": 40}, "task")
    with pytest.raises(ConfigError, match=r"task.*own_datasets:Loose is not a frozen dataclass"):
        parse_task({"name": f"{own}:Loose"}, "task")
    with pytest.raises(ConfigError, match=r"task.*cannot import 'nowhere'"):
        parse_task({"name": "nowhere:Own"}, "task")
