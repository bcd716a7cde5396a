"""Natural clients from a table: a file beside the dataset says which client every training example belongs to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.learning.partitions.natural import Natural
from fedreuse.learning.partitions.partition import partitions

if TYPE_CHECKING:
    from fedreuse.learning.data import Examples
    from fedreuse.learning.partitions.client_index import ClientIndex

__all__ = ["ClientTable"]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


@partitions.register("client_table")
@dataclass(frozen=True)
class ClientTable(Natural):
    r"""Natural clients from a table with one row per training example, in the order of the dataset.

    It adds users, writers or sites to a dataset that does not name them, such as the writers of QMNIST's table to
    MNIST.

    Args:
        path: The table: .csv (commas), .tsv or .txt (tabs), each perhaps with .gz behind it, or .parquet.
        column: Column of the client: a name, if the first row has names, or a position from 1, if it has none.
        min_examples: Smallest number of examples of a client, at least 1.
        min_classes: Smallest number of different labels of a client, at least 1.
        on_small: Treatment of clients below one of these bounds: `refuse` or `drop`.

    Raises:
        ConfigError: The table cannot be read, lacks the column or a value in it, or has another number of rows than
            the dataset has training examples.

    Example:
        task: {name: mnist,
               partition: {name: client_table, path: qmnist-train-labels.tsv.gz, column: 3}}
    """

    path: str = ""
    column: str | int = 1

    uses_clients = False
    names_clients = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(bool(self.path), "client_table.path must name the table of clients", self.path)
        require(
            isinstance(self.column, str) or self.column >= 1, "client_table.column must be a name or >= 1", self.column
        )

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Group the examples by client."""
        return super().split(self._with_clients(examples), num_clients, rng)

    def count_clients(self, examples: Examples) -> int:
        """Return the number of clients that take part."""
        return super().count_clients(self._with_clients(examples))

    def _with_clients(self, examples: Examples) -> Examples:
        where = f"task.partition.path: {self.path}"
        names, clients = np.unique(self._read(where), return_inverse=True)
        if len(clients) != len(examples):
            raise ConfigError(
                f"{where} has {len(clients):,} rows, but the dataset has {len(examples):,} training examples; name the "
                "table of this dataset, with one row per training example and in its order"
            )
        return replace(examples, clients=clients, names=names)

    def _read(self, where: str) -> np.ndarray:
        """Return the client of every row, as text."""
        import pyarrow as pa

        try:
            table = _table(Path(self.path).expanduser(), has_names=isinstance(self.column, str))
        except (OSError, pa.ArrowInvalid) as error:
            raise ConfigError(f"{where} cannot be read as a table ({error}); correct the path or the file") from None
        if isinstance(self.column, str):
            if self.column not in table.column_names:
                raise ConfigError(f"{where}: unknown column; {suggest(self.column, table.column_names)}")
            column = table.column(self.column)
        elif self.column > table.num_columns:
            raise ConfigError(f"{where} has {table.num_columns} columns, but column is {self.column}")
        else:
            column = table.column(self.column - 1)
        if column.null_count:
            row = column.is_null().to_pylist().index(True) + 1
            raise ConfigError(f"{where}: row {row} names no client; every training example needs one")
        return np.array(column.cast(pa.string()).to_pylist(), dtype=np.str_)


def _table(path: Path, *, has_names: bool) -> Any:
    """Read a table; values that may be numbers or text stay text, so that `007` and `7` are two clients."""
    import pyarrow.csv
    import pyarrow.parquet

    kind = Path(path.name.removesuffix(".gz")).suffix
    if kind == ".parquet":
        return pyarrow.parquet.read_table(path)
    if kind not in _SEPARATORS:
        raise ConfigError(
            f"task.partition.path: {path} must end in .csv, .tsv, .txt (each perhaps with .gz) or .parquet"
        )
    csv = pyarrow.csv
    reading = csv.ReadOptions(autogenerate_column_names=not has_names)
    with csv.open_csv(path, reading, csv.ParseOptions(delimiter=_SEPARATORS[kind])) as first:
        types = dict.fromkeys(first.schema.names, pyarrow.string())
    converting = csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    return csv.read_csv(path, reading, csv.ParseOptions(delimiter=_SEPARATORS[kind]), converting)
