"""Bounded readers: small bombs are refused before anything is built, and nothing else reads JSON or YAML."""

from __future__ import annotations

import json
import os
import re
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.core import bounded
from fedreuse.core.bounded import (
    MAX_DEPTH,
    TooLarge,
    array_names,
    check_yaml,
    json_lines,
    parse_json,
    parse_yaml,
    read_arrays,
    read_bytes,
    read_json,
    read_yaml,
)

SOURCE = Path(__file__).parents[2] / "src" / "fedreuse"
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a[]{}"\\ é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=4)
    ),
    max_leaves=150,
)


@given(PLAIN)
def test_json_is_read_as_it_was_written(content: object) -> None:
    assert parse_json(json.dumps(content)) == content
    assert parse_json(memoryview(json.dumps(content, ensure_ascii=False).encode())) == content


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000])
def test_deep_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 64"):
        parse_json(text)


def test_depth_is_exact_and_brackets_in_texts_do_not_count() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="nested deeper"):
        parse_json("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    assert parse_json(json.dumps(['[{"' * 500] * 300)) == ['[{"' * 500] * 300
    assert parse_json("[" + ",".join(["[]"] * 5_000) + "]") == [[]] * 5_000


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text("[1, 2, 3]")
    assert read_json(tmp_path / "a.json") == [1, 2, 3]
    with pytest.raises(ValueError, match="more than 8 bytes"):
        read_json(tmp_path / "a.json", 8)
    with pytest.raises(ValueError, match="9 bytes, more than 8"):
        parse_json("[1, 2, 3]", 8)
    monkeypatch.setattr(bounded, "MAX_YAML_BYTES", 3)
    with pytest.raises(ValueError, match="more than 3"):
        check_yaml("a: 1")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        read_bytes(tmp_path / "pipe")


def test_lines_are_read_one_by_one() -> None:
    assert list(json_lines(b'{"a": 1}\n{"a": 2}\n')) == [{"a": 1}, {"a": 2}]


def test_yaml_is_read_with_plain_values_only(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: &x [1, 2]\nb: *x\nc: {<<: {d: 3}}")
    assert read_yaml(tmp_path / "a.yaml") == {"a": [1, 2], "b": [1, 2], "c": {"d": 3}}
    with pytest.raises(ValueError, match="could not determine a constructor"):
        parse_yaml("!!python/object/apply:os.system [ls]")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_yaml_is_refused_where_libyaml_would_end_the_process(opening: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 64"):
        parse_yaml(opening * 100_000)


def test_aliases_count_as_often_as_they_repeat() -> None:
    doubled = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
    with pytest.raises(ValueError, match="aliases expanded"):
        parse_yaml(doubled)
    assert len(parse_yaml("\n".join(doubled.splitlines()[:9]))) == 9
    with pytest.raises(ValueError, match=r"\*a stands inside its own anchor"):
        parse_yaml("a: &a [1, *a]")


def test_what_is_not_yaml_is_left_to_the_parser() -> None:
    check_yaml("a: [1")
    with pytest.raises(ValueError, match="expected"):
        parse_yaml("a: [1")


def test_arrays_are_read_by_name(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(3), y=np.float32(2), names=np.array(["a", "b"]))
    assert array_names(tmp_path / "a.npz") == ["x", "y", "names"]
    assert {name: array.tolist() for name, array in read_arrays(tmp_path / "a.npz").items()} == {
        "x": [0, 1, 2], "y": 2.0, "names": ["a", "b"],
    }  # fmt: skip
    assert list(read_arrays(tmp_path / "a.npz", ["x"], optional=["y", "z"])) == ["x", "y"]
    with pytest.raises(KeyError, match="z"):
        read_arrays(tmp_path / "a.npz", ["z"])


def test_a_bomb_is_refused_by_its_declared_size(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(1_000_000))
    assert (tmp_path / "a.npz").stat().st_size < 20_000
    with pytest.raises(TooLarge, match=r"8,000,\d+ bytes, more than 1,000,000"):
        read_arrays(tmp_path / "a.npz", ["x"], 1_000_000)


def test_a_header_may_not_promise_more_than_the_file_holds(tmp_path: Path) -> None:
    whole = BytesIO()
    np.save(whole, np.zeros(4))
    lying = whole.getvalue().replace(b"(4,), }" + b" " * 11, b"(400000000000,), }")
    assert lying != whole.getvalue()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", lying)
    with pytest.raises(ValueError, match="longer than its file"):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize("data", [b"", b"PK", b"\x93NUMPY"])
def test_what_is_no_npz_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(ValueError, match="not an npz file"):
        read_arrays(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="not an npz file"):
        array_names(tmp_path / "a.npz")


def test_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="Python objects"):
        read_arrays(tmp_path / "a.npz")


def test_nothing_else_parses_json_yaml_or_arrays() -> None:
    own = {
        "core/bounded.py",
        "config/yaml_file.py",  # its loader refuses repeated keys; it calls `check_yaml` first
    }
    parsing = re.compile(r"json\.loads?\(|yaml\.(?:safe_|full_|unsafe_)?load(?:_all)?\(|np\.load\(|Loader\(text")
    found = {str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if parsing.search(file.read_text())}
    # benchmarks read the output of their own processes, some of them in environments without this package
    assert {name for name in found if not name.startswith("lab/bench/")} == own


def test_the_loader_is_safe() -> None:
    assert issubclass(bounded._LOADER, yaml.SafeLoader | getattr(yaml, "CSafeLoader", yaml.SafeLoader))
