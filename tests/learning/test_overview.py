"""A federation in numbers, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.learning.overview import Overview
from fedreuse.learning.task import parse_task


def four_visits(tmp_path: Path) -> Overview:
    """Client ann has labels 0 0 0 1, client bo 1 1; the test split is given."""
    inputs = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.savez(tmp_path / "train.npz", inputs=inputs, label=[0, 0, 0, 1, 1, 1], who=["ann"] * 4 + ["bo"] * 2)
    np.savez(tmp_path / "test.npz", inputs=inputs + 99, label=[0, 1, 0, 1, 0, 1], who=["cy"] * 6)
    spec = {"name": "files", "path": str(tmp_path), "client_column": "who", "clients": 2, "partition": "natural"}
    return Overview(parse_task({**spec, "validation": 0.25}, "task").prepare(1))


def test_by_hand(tmp_path: Path) -> None:
    overview = four_visits(tmp_path)
    assert overview.sizes.tolist() == [4, 2]
    assert overview.classes_per_client.tolist() == [2, 1]
    # overall 3 of 6 are label 1; ann 1/4, distance 1/4; bo all, distance 1/2
    assert overview.label_distances.tolist() == pytest.approx([0.25, 0.5])
    # Gini of 2 and 4: sum |x_i - x_j| / (2 n^2 mean) = 4 / (2 x 4 x 3) = 1/6
    assert overview.size_gini == pytest.approx(1 / 6)
    assert overview.class_counts(np.array([1, 0])).tolist() == [[0, 2], [3, 1]]
    assert overview.spread(1).tolist() == [0]
    assert overview.spread(9).tolist() == [0, 1]
    assert [overview.name_of(client) for client in range(2)] == ["0 (ann)", "1 (bo)"]
    told = overview.to_plain()
    assert told["examples"] == {"training": 4, "validation": 2, "test": 6}
    assert told["sizes"] == {"min": 2, "median": 3, "mean": 3, "max": 4}
    assert (told["clients_with_one_example"], told["clients_with_one_class"]) == (0, 1)


def test_tokens_by_hand(tmp_path: Path) -> None:
    """Ann says aab (labels a b), bo aaa (labels a a): b is one of four labels, so half of ann's and none of bo's."""
    (tmp_path / "t.csv").write_text("who,text,part\n" + "".join(f"{who},{text},train\n" for who, text in
                                    (("ann", "aab"), ("bo", "aaa"))) + "ann,ba,test\n")  # fmt: skip
    spec = {"name": "text", "path": str(tmp_path / "t.csv"), "client_column": "who", "split_column": "part",
            "target": "sequence", "length": 4, "clients": 2, "validation": 0.0,
            "partition": {"name": "natural", "min_examples": 1}}  # fmt: skip
    overview = Overview(parse_task(spec, "task").prepare(1))
    assert overview.labels_per_client.tolist() == [2, 2]
    assert overview.classes_per_client.tolist() == [2, 1]
    assert overview.label_distances.tolist() == pytest.approx([0.25, 0.25])
    assert [overview.class_name(number) for number in overview.frequent(2).tolist()] == ["'a'", "'b'"]
