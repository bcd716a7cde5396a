"""Checks before the first round: of the data, and of the network on two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.core.own_code import own_code_error
from fedreuse.learning.data import Data, Split
from fedreuse.learning.targets import IGNORED, kind_of

if TYPE_CHECKING:
    from fedreuse.learning.trainer import Trainer

__all__ = ["check_data", "check_network"]

_KINDS = "biuf"  # of numpy: truth values, integers, floating point


def check_data(data: object, source: object) -> Data:
    """Check the result of a dataset's `load`: an instance of `Data` whose splits have consistent arrays.

    Raises:
        DataError: An array has the wrong type, shape or range; the message names the split and the remedy.
    """
    name = f"task: the dataset {type(source).__name__}"
    if not isinstance(data, Data):
        raise DataError(f"{name} returned {_kind(data)}; its `load` must return fedreuse.learning.data.Data")
    splits = {"train": data.train, "test": data.test, "validation": data.validation}
    for split_name, split in splits.items():
        if split is not None:
            _check_split(split, f"{name}: {split_name}", data)
    return data


def _check_split(split: Split, where: str, data: Data) -> None:
    for part in ("inputs", "labels"):
        array: Any = getattr(split, part)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in _KINDS:
            given = f"numbers of type {array.dtype}" if isinstance(array, np.ndarray) else _kind(array)
            raise DataError(f"{where}.{part} is {given}; a numpy array of numbers is needed (np.asarray(...))")
    if split.inputs.ndim < 2:
        raise DataError(
            f"{where}.inputs has the shape {split.inputs.shape}; the first axis counts examples, others must follow"
        )
    if split.inputs.shape[1:] != data.shape:
        raise DataError(f"{where}.inputs are of shape {split.inputs.shape[1:]}, but those of train are {data.shape}")
    if data.num_tokens is not None:
        _check_range(split.inputs, f"{where}.inputs", data.num_tokens)
    _check_labels(split.labels, where, data)


def _check_range(inputs: np.ndarray, where: str, num_tokens: int) -> None:
    """Check token numbers now: one without a row in the embedding would fail in a late round."""
    if inputs.size and not 0 <= inputs.min() <= inputs.max() < num_tokens:
        raise DataError(
            f"{where} are token numbers from {inputs.min()} to {inputs.max()}, but those of this task are 0 to "
            f"{num_tokens - 1}; use the tokens of the task"
        )


def _check_labels(labels: np.ndarray, where: str, data: Data) -> None:
    kind = kind_of(labels)
    if kind != data.kind:
        raise DataError(f"{where}.labels are {kind}, but those of train are {data.kind}; all splits have one kind")
    if labels.ndim > 2 or (labels.ndim == 2 and labels.shape[1:] != data.train.labels.shape[1:]):
        raise DataError(
            f"{where}.labels have the shape {labels.shape[1:]} per example, those of train "
            f"{data.train.labels.shape[1:]}; one row of the same length per example is needed"
        )
    if kind == "tokens":
        _check_tokens(labels, where, data)
    elif kind == "numbers" and not np.isfinite(labels).all():
        example = int(np.argmin(np.isfinite(labels).reshape(len(labels), -1).all(1)))
        raise DataError(f"{where}.labels: example {example} is {labels[example]}; leave out such examples")
    elif kind == "classes" and labels.size and not 0 <= labels.min() <= labels.max() < data.num_classes:
        raise DataError(
            f"{where}.labels go from {labels.min()} to {labels.max()}, but num_classes is "
            f"{data.num_classes}; labels must be 0 to {data.num_classes - 1}"
        )


def _check_tokens(labels: np.ndarray, where: str, data: Data) -> None:
    is_wrong = (labels != IGNORED) & ((labels < 0) | (labels >= data.num_classes))
    if is_wrong.any():
        example = int(np.argmax(is_wrong.any(1)))
        raise DataError(
            f"{where}.labels: example {example} has the label {labels[is_wrong][0]}, but num_classes is "
            f"{data.num_classes}; labels must be 0 to {data.num_classes - 1}, or {IGNORED} where none counts"
        )
    is_empty = (labels == IGNORED).all(1)
    if is_empty.any():
        raise DataError(
            f"{where}.labels: no label of example {int(np.argmax(is_empty))} counts (all are {IGNORED}), nor "
            f"of {np.count_nonzero(is_empty) - 1} others; leave such examples out"
        )


def check_network(trainer: Trainer) -> None:
    """Run the network on two training examples, without changing it.

    Raises:
        ConfigError: The network cannot learn, fails on the examples, or its outputs do not fit the labels.
    """
    network = trainer.network
    if network.vector.dtype == torch.float16:
        raise ConfigError(
            "network: its weights are float16, whose gradients underflow, so that it would train to almost nothing "
            "without an error; convert the module with .float(), and use codec `narrow` to send fewer bits"
        )
    if len(trainer.training.indices) < 2:
        return  # there are not two examples to run it on
    _check_vocabulary(network.module, trainer.num_tokens)
    _check_padding(network.module, trainer.padding)
    network.load(trainer.initial)
    is_training = network.module.training
    network.module.eval()  # no dropout, and running statistics do not change
    try:
        with torch.random.fork_rng(devices=[]), torch.inference_mode():
            inputs, labels = trainer.batch(trainer.training.indices[:2], None)
            outputs = network.module(inputs)
            _check_outputs(outputs, trainer)
            _check_finite(inputs, outputs, trainer.loss(outputs, labels))
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:
        shape = tuple(trainer.examples_shape)
        raise ConfigError(
            f"network: it fails on two training examples of shape {shape}: {own_code_error(error) or error}"
        ) from error
    finally:
        network.module.train(is_training)
        network.load(trainer.initial)
        network.release()


def _check_vocabulary(module: torch.nn.Module, num_tokens: int | None) -> None:
    """Check the rows of the embedding: too few would fail at the first rare token, perhaps in a late round."""
    embeddings = [layer for layer in module.modules() if isinstance(layer, torch.nn.Embedding)]
    if num_tokens is not None and embeddings and embeddings[0].num_embeddings < num_tokens:
        raise ConfigError(
            f"network: its embedding has {embeddings[0].num_embeddings} rows, but the data have {num_tokens} token "
            f"numbers; set network.tokens: {num_tokens}, or lower task.buckets"
        )


def _check_padding(module: torch.nn.Module, padding: int | None) -> None:
    """Require the padding token of the data, if the network uses one to find the end of a text."""
    expected = getattr(module, "padding", None)
    if padding is not None and expected is not None and expected != padding:
        given = f"texts are filled up with token {padding}" if padding >= 0 else "the tokenizer has no padding token"
        raise ConfigError(
            f"network: it takes token {expected} for padding, but {given}; choose task.tokenizer and network.path that "
            "belong together, give the tokenizer that padding token (save_pretrained keeps it), or, for lstm and "
            "transformer, set network.output: tokens and task.target: sequence, which need none"
        )


def _check_outputs(outputs: Any, trainer: Trainer) -> None:
    if not isinstance(outputs, torch.Tensor) or outputs.dim() < 1 or outputs.shape[0] != 2:
        given = f"of shape {tuple(outputs.shape)}" if isinstance(outputs, torch.Tensor) else _kind(outputs)
        raise ConfigError(f"network: two examples give outputs {given}; a tensor with one row per example is needed")
    kind = trainer.label_kind
    if kind == "tokens" and outputs.dim() != 3:
        raise ConfigError(
            f"network: labels are tokens, so scores are examples x length x tokens, but it gives "
            f"{tuple(outputs.shape)}; set network.output: tokens, or task.target to next or label"
        )
    if kind == "classes" and outputs.dim() == 3:
        raise ConfigError(
            f"network: labels are classes, one per example, but it gives {tuple(outputs.shape)}; set network.output to "
            "last or mean, or task.target: sequence"
        )
    num_classes = trainer.num_classes
    if outputs.dim() == 2 and 1 < outputs.shape[1] < num_classes:
        raise ConfigError(
            f"network: it gives {outputs.shape[1]} scores per example, but the data have {num_classes} classes; "
            "build its last layer from `num_classes`"
        )


def _check_finite(inputs: torch.Tensor, outputs: torch.Tensor, loss: torch.Tensor) -> None:
    """Check the numbers before any step: what is undefined here is no matter of the learning rate."""
    for name, numbers in (
        ("task: the inputs", inputs),
        ("network: its outputs", outputs),
        ("task.loss: the loss", loss),
    ):
        if isinstance(numbers, torch.Tensor) and not bool(numbers.isfinite().all()):
            first = numbers[~numbers.isfinite()].flatten()[0].item()
            raise ConfigError(
                f"{name} of two training examples, before any training, {'is' if numbers.dim() == 0 else 'hold'} "
                f"{first}; correct the definition (a logarithm or root of a negative number, a division by zero)"
            )


def _kind(thing: object) -> str:
    """Return the type of an object with its article."""
    name = type(thing).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
