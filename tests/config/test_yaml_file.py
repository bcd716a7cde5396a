"""YAML files as plain data: numbers, repeated keys, and files that cannot be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.config.yaml_file import read_overrides, read_yaml
from fedreuse.core.errors import ConfigError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("1e-4", 1e-4), ("1E5", 1e5), ("-2e3", -2e3), ("1.e-2", 0.01), ("1.5e+3", 1500.0), ("1.0e-4", 1e-4), ("0.5", 0.5)],
)
def test_scientific_numbers_are_numbers(tmp_path: Path, text: str, wanted: float) -> None:
    assert read_yaml(write(tmp_path / "a.yaml", f"x: {text}")) == {"x": wanted}


@pytest.mark.parametrize("text", ["e4", "1e", "12e4f", "v1e4"])
def test_words_stay_words(tmp_path: Path, text: str) -> None:
    assert read_yaml(write(tmp_path / "a.yaml", f"x: {text}")) == {"x": text}


def test_a_repeated_key_is_refused_at_any_depth(tmp_path: Path) -> None:
    top = write(tmp_path / "top.yaml", "seed: 1\ntask: {name: digits}\nseed: 2\n")
    with pytest.raises(ConfigError, match=r"(?s)top\.yaml: not valid YAML:\n.*'seed' is repeated.*line 3"):
        read_yaml(top)
    deep = write(tmp_path / "deep.yaml", "task: {name: digits, clients: 3, clients: 4}\n")
    with pytest.raises(ConfigError, match=r"(?s)deep\.yaml: not valid YAML:\n.*'clients' is repeated"):
        read_yaml(deep)


def test_anchors_and_merges_are_no_repetition(tmp_path: Path) -> None:
    text = "base: &base {name: digits, clients: 3}\ntask: {<<: *base, clients: 4}\n"
    assert read_yaml(write(tmp_path / "a.yaml", text))["task"] == {"name": "digits", "clients": 4}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "paper.yaml", "seed: 1")
    with pytest.raises(ConfigError, match=r"papr\.yaml: no such file; did you mean 'paper\.yaml'\?$"):
        read_yaml(tmp_path / "papr.yaml")
    with pytest.raises(ConfigError, match=r"no such file; the folder .*absent does not exist either$"):
        read_yaml(tmp_path / "absent" / "a.yaml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"a\.yaml: no such file; there is no YAML file in .*empty$"):
        read_yaml(tmp_path / "empty" / "a.yaml")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00seed")
    with pytest.raises(ConfigError, match=r"binary\.yaml: cannot be read \(.*utf-8"):
        read_yaml(tmp_path / "binary.yaml")
    with pytest.raises(ConfigError, match=r"cannot be read \(.*directory"):
        read_yaml(tmp_path)


def test_overrides_become_a_tree() -> None:
    tree = read_overrides(["rounds.count=3", "local.optimizer.lr=1e-2", "method=fedprox"])
    assert tree == {"rounds": {"count": 3}, "local": {"optimizer": {"lr": 0.01}}, "method": "fedprox"}
    with pytest.raises(ConfigError, match="key=value"):
        read_overrides(["rounds.count"])


@pytest.mark.slow
def test_files_are_read_without_torch() -> None:
    script = "import sys, fedreuse.config.yaml_file\nassert not {'torch', 'numpy', 'pydantic'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)
