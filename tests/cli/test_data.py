"""`fedreuse data`: what there is, what is here, and what is wrong with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke


def test_every_dataset_is_listed(invoke: Invoke, tmp_path: Path) -> None:
    told = {row["name"]: row for row in json.loads(invoke("data", "list", "--folder", tmp_path, "--json").stdout)}
    assert told["digits"]["is_here"]
    assert not told["mnist"]["is_here"]
    assert told["mnist"]["examples"] == {"train": 60_000, "test": 10_000}
    assert told["mnist"]["sources"][0].startswith("https://")
    shown = invoke("data", "list", "--folder", tmp_path)
    assert "comes with scikit-learn" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 100


@pytest.mark.slow
def test_the_digits_are_good(invoke: Invoke) -> None:
    told = json.loads(invoke("data", "check", "digits", "--json").stdout)
    assert told["examples"] == {"train": 1442, "test": 355}
    assert told["is_pinned"]
    assert "digits: good" in invoke("data", "check", "digits").stdout


@pytest.mark.slow
def test_absent_damaged_or_unknown(invoke: Invoke, tmp_path: Path) -> None:
    absent = invoke("data", "check", "mnist", "--folder", tmp_path)
    assert absent.exit_code == 2
    assert "fedreuse data fetch mnist" in absent.stderr
    (tmp_path / "mnist").mkdir()
    for split in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            (tmp_path / "mnist" / f"{split}-{kind}-ubyte").write_bytes(b"not an idx file")
    damaged = invoke("data", "check", "mnist", "--folder", tmp_path)
    assert damaged.exit_code == 2
    assert "ubyte" in damaged.stderr
    unknown = invoke("data", "check", "mnits")
    assert unknown.exit_code == 2
    assert "did you mean 'mnist'?" in unknown.stderr


@pytest.mark.slow
def test_nothing_to_fetch(invoke: Invoke) -> None:
    shown = invoke("data", "fetch", "digits")
    assert shown.exit_code == 2
    assert "comes with scikit-learn" in shown.stderr


@pytest.mark.slow
def test_a_fetch_tells_what_it_gets_and_what_it_got(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedreuse.learning.datasets import fetch as module

    def fetch(name: str, folder: Path, progress: Any) -> Path:
        assert (name, folder) == ("digits", tmp_path)
        progress("digits.zip", 10, 100)
        progress("digits.zip", 100, 100)
        return folder / name

    monkeypatch.setattr(module, "fetch", fetch)
    words = ("data", "fetch", "digits", "--folder", tmp_path)
    shown = invoke(*words)
    assert shown.stdout == f"fetching digits.zip\ndigits: train 1,442, test 355 in {tmp_path / 'digits'}\n"
    asked = invoke(*words, "--json")
    assert json.loads(asked.stdout)["folder"] == str(tmp_path / "digits")
    assert asked.stderr == "fetching digits.zip\n"


@pytest.mark.slow
def test_what_a_reader_has_met_is_told_and_what_to_pin(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedreuse.learning.datasets.facts import FACTS

    told = {row["name"]: row["has_met_published_files"] for row in json.loads(invoke("data", "list", "--json").stdout)}
    assert told["mnist"]
    assert not any(told[name] for name in ("emnist_balanced", "pathmnist", "cifar100"))
    assert "made files" in invoke("data", "list").stdout
    known = FACTS["digits"]
    monkeypatch.setitem(FACTS, "digits", replace(known, digest=None, array_digests=()))
    shown = invoke("data", "check", "digits").stdout
    assert "pin them in" in shown
    assert all(f'"{digest}"' in shown for digest in (known.digest, *known.array_digests))
    ours = invoke("data", "check", "files")
    assert ours.exit_code == 2
    assert "fedreuse data show CONFIG" in ours.stderr
