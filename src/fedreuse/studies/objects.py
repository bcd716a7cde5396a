"""Python objects of a session as parts of a configuration: networks get a name, data are stored once by content."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, DataError, suggest
from fedreuse.core.files import write_whole
from fedreuse.learning.files.column_rules import text_of
from fedreuse.learning.files.torch_dataset import TorchSource
from fedreuse.studies.trial import Request, simulated_clients, task_of

__all__ = ["SESSION", "Stored", "named_network", "stored_data"]

SESSION = "fedreuse_session"
"""Module of networks that only this process knows: classes of a notebook, functions inside functions, instances."""
_CLIENT, _LABEL = "client", "label"


@dataclass(frozen=True)
class Stored:
    """Data in a form that a configuration can name.

    Args:
        task: Keys of the configuration's `task`.
        decisions: Treatment of each problem of the data.
        notes: Sentences that a reader of scores should know.
        names: Classes in the order of the network's outputs; None: the outputs are numbers or flags, or the classes
            are those of the task.
        preparation: Folder with `preparation.json`; None for data that need none.
    """

    task: dict[str, Any]
    decisions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    names: np.ndarray | None = field(default=None, compare=False)
    preparation: Path | None = None


def named_network(model: Any) -> tuple[dict[str, Any] | None, bool]:
    """Return a network as a configuration names it, and whether only this process can build it.

    Args:
        model: None; a name or mapping of a configuration; a class or function that makes a torch module; a module,
            whose weights are the initial model.

    Raises:
        ConfigError: The object is none of these.
    """
    if model is None or isinstance(model, str):
        return (None if model is None else {"name": model}), False
    if isinstance(model, Mapping):
        return dict(model), False
    from torch import nn

    if not callable(model):
        raise ConfigError(f"model: a torch module, a class or a function that makes one expected, got {model!r}")
    is_instance = isinstance(model, nn.Module)
    home, name = getattr(model, "__module__", "__main__"), getattr(model, "__qualname__", "")
    if not is_instance and home != "__main__" and name.isidentifier() and _is_found(model, home, name):
        allow([home])
        return {"name": f"{home}:{name}"}, False
    label = type(model).__name__ if is_instance else getattr(model, "__name__", type(model).__name__)
    word = "".join(sign if sign.isalnum() else "_" for sign in label).strip("_") or "network"
    place = f"{word}_{_fingerprint(model)[:8]}"
    setattr(_session(), place, (lambda: copy.deepcopy(model)) if is_instance else model)
    return {"name": f"{SESSION}:{place}"}, True


def _is_found(model: Any, home: str, name: str) -> bool:
    return getattr(sys.modules.get(home), name, None) is model


def _session() -> ModuleType:
    if SESSION not in sys.modules:
        module = ModuleType(SESSION, "Networks that only this process knows.")
        module.__spec__ = ModuleSpec(SESSION, None)
        sys.modules[SESSION] = module
    allow([SESSION])
    return sys.modules[SESSION]


def _fingerprint(model: Any) -> str:
    """Return a digest of a network's code and, for an instance, of its layers and weights."""
    digest = sha256()
    from torch import nn

    kind = type(model) if isinstance(model, nn.Module) else model
    functions = [kind] if hasattr(kind, "__code__") else [
        function for cls in reversed(getattr(kind, "__mro__", ())) if cls.__module__.partition(".")[0] != "torch"
        for _, function in sorted(vars(cls).items())
    ]  # fmt: skip
    for function in functions:
        if (code := getattr(function, "__code__", None)) is not None:
            _add_code(digest, code)
    if isinstance(model, nn.Module):
        digest.update(repr(model).encode())
        for name, tensor in sorted(model.state_dict().items()):
            digest.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def _add_code(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(digest, constant)
        else:
            digest.update(repr(constant).encode())


def stored_data(data: Any, label: Any, clients: Any, folder: Path) -> Stored:
    """Store data once, under a name made of their content, and return the task that reads them.

    Args:
        data: A path or the name of a dataset; a pandas table (or any object with `to_pandas`); an array or tensor of
            inputs with `label` as an array; a tuple of (inputs, labels) or (inputs, labels, clients); a torch Dataset;
            a mapping of clients to any of these but paths.
        label: Column of the label of a table, or the labels of an array of inputs.
        clients: Column of the client of a table; one entry per example; a number of simulated clients; None: 10
            simulated clients.
        folder: Folder for the files.

    Raises:
        UserError: The data cannot be used; the message names the remedy.
    """
    if isinstance(data, str | Path):
        place = folder / Path(data).stem
        request = Request(str(data), _column(label, "label"), _column(clients, "clients"))
        return _of_request(request, place, clients)
    if isinstance(data, Mapping) and not hasattr(data, "columns"):
        data, label, clients = _joined(data, label, clients)
    if hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if hasattr(data, "to_parquet") and hasattr(data, "columns"):
        return _of_frame(data, label, clients, folder)
    return _of_arrays(*_as_arrays(data, label, clients), folder)


def _column(given: Any, what: str) -> str | None:
    if given is None or isinstance(given, str):
        return given
    if what == "clients" and _is_count(given):
        return None
    raise ConfigError(f"{what}: the name of a column expected for a file, got {type(given).__name__}")


def _is_count(given: Any) -> bool:
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def _of_request(request: Request, place: Path, clients: Any) -> Stored:
    task, decisions, notes = task_of(request, place)
    if _is_count(clients):
        task, notes = {**task, "clients": int(clients)}, ()
    preparation = place if (place / "preparation.json").exists() and str(place) in str(task.get("path", "")) else None
    return Stored(task, decisions, notes, None, preparation)


def _of_frame(frame: Any, label: Any, clients: Any, folder: Path) -> Stored:
    if not isinstance(label, str):
        raise ConfigError(
            f"label: the column to predict is needed for a table, such as label='{list(frame.columns)[-1]}'"
        )
    names = [str(name) for name in frame.columns]
    for role, name in (("label", label), ("clients", clients)):
        if isinstance(name, str) and name not in names:
            raise DataError(f"{role}: the table has no column '{name}'; {suggest(name, names)}")
    frame = frame.set_axis(names, axis=1)
    client = clients if isinstance(clients, str) else None
    if clients is not None and client is None and not _is_count(clients):
        client = _CLIENT if _CLIENT not in names else "client (given)"
        frame = frame.assign(**{client: _per_example(clients, len(frame))})
    import pyarrow as pa
    import pyarrow.parquet

    buffer = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), buffer)
    content = buffer.getvalue().to_pybytes()
    place = folder / sha256(content + repr((label, client)).encode()).hexdigest()[:12]
    source = place / "raw.parquet"
    if not source.exists():
        place.mkdir(parents=True, exist_ok=True)
        write_whole(source, content)
    stored = _of_request(Request(str(source), label, client), place, clients)
    texts = {text: value for value in frame[label].dropna().unique() if (text := text_of(value)) is not None}
    classes = [texts.get(name) for name in stored.task.get("classes", ())]
    return replace(stored, names=np.array(classes) if classes and None not in classes else None)


def _per_example(values: Any, count: int) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != count:
        raise DataError(f"clients: one entry per example expected ({count}), got an array of shape {array.shape}")
    return array


def _joined(parts: Mapping[Any, Any], label: Any, clients: Any) -> tuple[Any, Any, Any]:
    """Return the data of all clients as one, with the client of each example."""
    if not parts:
        raise DataError("data: the mapping has no clients")
    if clients is not None:
        raise ConfigError("clients: the mapping of `data` names the clients already; drop the argument")
    found = list(parts.items())
    if all(hasattr(part, "columns") for _, part in found):
        import pandas as pd

        frame = pd.concat([part for _, part in found], ignore_index=True)
        return frame, label, np.repeat([str(name) for name, _ in found], [len(part) for _, part in found])
    arrays = [_as_arrays(part, None, None) for _, part in found]
    sizes = [len(inputs) for inputs, _, _ in arrays]
    inputs, labels = (np.concatenate([one[at] for one in arrays]) for at in (0, 1))
    return (inputs, labels), None, np.repeat([str(name) for name, _ in found], sizes)


def _as_arrays(data: Any, label: Any, clients: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return inputs, labels and clients of arrays, tensors, tuples of them or a torch Dataset."""
    if isinstance(data, tuple | list) and len(data) in (2, 3) and all(hasattr(one, "__len__") for one in data):
        if label is not None or (len(data) == 3 and clients is not None):
            raise ConfigError("data: the tuple has the labels (and clients) already; drop `label` or `clients`")
        inputs, labels = data[0], data[1]
        clients = data[2] if len(data) == 3 else clients
    elif hasattr(data, "__array__") or hasattr(data, "detach"):
        if label is None or isinstance(label, str):
            raise ConfigError("label: an array of labels, one per row of `data`, is needed for an array of inputs")
        inputs, labels = data, label
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        source = TorchSource("data", data)
        facts = source.facts()
        inputs = np.concatenate(list(source.chunks()))
        labels = facts.labels.values[facts.labels.codes]
        if facts.clients is not None and clients is None:
            clients = facts.clients.values[facts.clients.codes]
    else:
        raise DataError(
            f"data: {type(data).__name__} is not supported; give a path, a pandas table, arrays, (inputs, labels), a "
            "torch Dataset, or a mapping of clients to these"
        )
    return _array(inputs), _array(labels), clients


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    return array.astype(np.float32) if array.dtype in (np.float64, np.float16) else array


def _of_arrays(inputs: np.ndarray, labels: np.ndarray, clients: Any, folder: Path) -> Stored:
    if len(inputs) != len(labels):
        raise DataError(f"data: {len(inputs)} inputs but {len(labels)} labels; one label per input is needed")
    if inputs.ndim == 1:
        inputs = inputs[:, None]
    kind, stored, names = _labels(labels)
    arrays = {"inputs": inputs, _LABEL: stored}
    natural = clients is not None and not _is_count(clients)
    if natural:
        arrays[_CLIENT] = _per_example(clients, len(inputs)).astype(str)
    digest = sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    path = folder / digest.hexdigest()[:12] / "arrays.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    task: dict[str, Any] = {"name": "files", "path": str(path), "label_column": _LABEL, **kind}
    if natural:
        return Stored({**task, "client_column": _CLIENT}, (), (), names)
    spread = simulated_clients(int(clients) if clients is not None else None, is_iid=names is None)
    return Stored({**task, **spread}, (), (), names)


def _labels(labels: np.ndarray) -> tuple[dict[str, Any], np.ndarray, np.ndarray | None]:
    """Return the keys of a task for the kind of the labels, the labels to store, and the names of classes."""
    if labels.ndim == 2 and labels.shape[1] > 1:
        return {"labels": "flags" if set(np.unique(labels)) <= {0, 1} else "numbers"}, labels, None
    flat = labels.reshape(len(labels))
    if flat.dtype.kind == "f" and not np.array_equal(flat, np.round(flat)):
        return {"labels": "numbers"}, flat, None
    names, codes = np.unique(flat, return_inverse=True)
    if len(names) < 2:
        raise DataError(f"label: all {len(flat)} labels are {names[0]!r}; two classes are needed")
    return {"classes": len(names)}, codes.astype(np.int64), names
