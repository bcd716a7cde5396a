"""Clients from a table beside the dataset: three forms of file, and tables that do not fit."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_table import ClientTable
from tests.tiny import plain

EXAMPLES = Examples(np.array([0, 1, 0, 1, 1]))
RNG = np.random.default_rng(0)


def members(partition: ClientTable, num_clients: int) -> list[list[int]]:
    index = partition.split(EXAMPLES, num_clients, RNG)
    return [index.of(client).tolist() for client in range(num_clients)]


@pytest.mark.parametrize("form", ["csv", "tsv.gz", "parquet", "no names"])
def test_examples_stay_with_the_client_of_their_row(form: str, tmp_path: Path) -> None:
    path, clients = tmp_path / f"writers.{'txt' if form == 'no names' else form}", ["b", "007", "b", "7", "007"]
    rows = [f"{at}SEP{client}" for at, client in enumerate(clients)]
    if form == "csv":
        path.write_text("\n".join(["digit,writer", *rows]).replace("SEP", ","))
    elif form == "tsv.gz":
        path.write_bytes(gzip.compress("\n".join(["digit\twriter", *rows]).replace("SEP", "\t").encode()))
    elif form == "parquet":
        pyarrow.parquet.write_table(pa.table({"digit": range(5), "writer": clients}), path)
    else:
        path.write_text("\n".join(rows).replace("SEP", "\t"))
    partition = ClientTable(path=str(path), column=2 if form == "no names" else "writer", min_examples=1)
    # in the order of the names as text: 007, 7, b
    assert members(partition, 3) == [[1, 4], [3], [0, 2]]
    assert partition.count_clients(EXAMPLES) == 3
    assert members(ClientTable(path=str(path), column=partition.column, on_small="drop"), 2) == [[1, 4], [0, 2]]


@pytest.mark.parametrize(
    ("rows", "column", "reason"),
    [
        (["a", "b"], 1, "has 2 rows, but the dataset has 5 training examples"),
        (["writer", *"aabba"], "author", "unknown column"),
        ([*"aabba"], 3, "has 1 columns, but column is 3"),
        (["x\ta", "x\ta", "x\t", "x\ta", "x\tb"], 2, "row 3 names no client"),
        ([*"aabba"], 0, "must be a name or >= 1"),
    ],
)
def test_tables_that_do_not_fit_are_refused(rows: list[str], column: str | int, reason: str, tmp_path: Path) -> None:
    (tmp_path / "writers.txt").write_text("\n".join(rows))
    with pytest.raises(ConfigError, match=reason):
        members(ClientTable(path=str(tmp_path / "writers.txt"), column=column), 2)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    for name in ("absent.csv", "writers.json", "broken.parquet", "broken.csv.gz"):
        if name != "absent.csv":
            (tmp_path / name).write_bytes(b"\x00\x01")
        with pytest.raises(ConfigError, match=name):
            members(ClientTable(path=str(tmp_path / name)), 2)


def test_a_configuration_infers_the_number_of_clients(tmp_path: Path) -> None:
    (tmp_path / "writers.csv").write_text("\n".join(["writer", *(f"w{at % 4}" for at in range(160))]))
    partition = {"name": "client_table", "path": str(tmp_path / "writers.csv"), "column": "writer"}
    task = {key: value for key, value in plain()["task"].items() if key != "clients"} | {"partition": partition}
    prepared = load(plain(task=task)).task.prepare(5)
    assert [len(prepared.training.of(client)) for client in range(4)] == [36] * 4  # a tenth of 40 is held out
