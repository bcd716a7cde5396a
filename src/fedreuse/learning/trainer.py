"""Local training, gradients and evaluation in torch: one network, one thread, every draw from a named stream."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from fedreuse.core.errors import ConfigError, RunError, require
from fedreuse.core.local_trainer import BatchPlan, SplitName, Trained, Work
from fedreuse.core.metrics import Metrics
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream, stream_seed
from fedreuse.core.registry import part
from fedreuse.core.spool import spooled
from fedreuse.core.streams import streams
from fedreuse.core.tensors import scale
from fedreuse.learning.allocator import keep_freed_memory
from fedreuse.learning.augmentation import crop_and_flip
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.optimizers import LearningRate, Optimizer, learning_rates, optimizers
from fedreuse.learning.targets import IGNORED, kind_of, num_counted

if TYPE_CHECKING:
    from fedreuse.core.corrections import Correction
    from fedreuse.core.schema import ModelSchema
    from fedreuse.core.tensors import Tensors
    from fedreuse.learning.data import Data, Split
    from fedreuse.learning.losses.loss import Loss
    from fedreuse.learning.networks.network import Network
    from fedreuse.learning.partitions import ClientIndex
    from fedreuse.learning.scoring import Scoring
    from fedreuse.learning.targets import LabelKind

__all__ = ["Local", "TorchLocalTrainer", "Trainer", "device_of", "initial_network"]

_EVALUATION_BATCH = 1000  # examples
_EVALUATION_TOKENS = 4096


@dataclass(frozen=True)
class Local:
    """Settings of local training.

    Args:
        epochs: Passes over the client's examples per round, at least 1.
        batch: Examples of a batch, at least 2; batch normalisation has no variance over one example.
        optimizer: Optimizer, with its learning rate.
        lr_schedule: Factor on the learning rate by round.
        clip_norm: Largest L2 norm of the gradient of a batch, positive; default: no clipping.
        together: Clients that train as one batched computation, at least 1; `auto` is a quarter of the cohort, at most
            256 clients and 2 million weights together, and 1 for networks of more than 200,000 weights or 500,000
            operations per example (8 million for sequences of linear layers, convolutions, GroupNorm, pooling and
            ReLU), which gain nothing. Results equal those of 1 up to rounding, and do not depend on
            the number of workers. Networks that cannot (BatchNorm, dropout, LSTM) train one by one; a deployed client
            always trains alone.
        device: Torch device, such as `cpu`, `cuda` (workers are spread over all CUDA devices) or `cuda:1`.

    Raises:
        ConfigError: A value is out of range, or torch does not know the device.

    Example: `local: {epochs: 3, batch: 64, optimizer: {name: sgd, lr: 0.05}}`.
    """

    epochs: int = 3
    batch: int = 128
    optimizer: Optimizer = part(optimizers, "sgd")
    lr_schedule: LearningRate = part(learning_rates, "constant")
    clip_norm: float | None = None
    device: str = "cpu"
    together: int | Literal["auto"] = 1

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.epochs >= 1, "epochs must be at least 1", self.epochs)
        require(
            self.batch >= 2,
            "batch must be at least 2, because batch normalisation has no variance over one example",
            self.batch,
        )
        _named_device(self.device)
        require(self.together == "auto" or self.together >= 1, "together must be at least 1", self.together)
        require(self.clip_norm is None or self.clip_norm > 0, "clip_norm must be positive", self.clip_norm)


def initial_network(network: Network, shape: tuple[int, ...], num_classes: int, seed: int) -> FlatNetwork:
    """Return a network with the initial weights of a seed, which are the same for every method."""
    _seed_torch(seed, "init", 0, -1)
    return FlatNetwork(network.build(shape, num_classes))


class Trainer:
    """Resources that all clients of one process share: the network, the data, and the settings of training.

    Args:
        network: The network; its current values are the initial model.
        data: The data; the test split is not used.
        clients: Training and validation examples of every client.
        local: Settings of local training.
        objective: Loss, and the metrics of the run.
        seed: Seed of the run.
    """

    def __init__(
        self,
        network: FlatNetwork,
        data: Data,
        clients: tuple[ClientIndex, ClientIndex],
        local: Local,
        objective: tuple[Loss, Scoring],
        seed: int,
    ) -> None:
        """Set up one torch thread, for speed and for bit-identical results."""
        torch.set_num_threads(1)
        keep_freed_memory()
        self._device = device_of(local.device)
        self.network = network.on(self._device)
        self.local = local
        self.seed = seed
        self.loss, self._scoring = objective
        self.training, self.validation = clients
        self._data = data
        self._inputs, self._labels = _shared(data.train.inputs), _shared(_as_int64(data.train.labels))
        self._dtype: torch.dtype = self.network.vector.dtype
        self._flops: dict[tuple[str, ...] | None, int] = {}
        self.initial = self.network.read()
        self.initial = replace(self.initial, weights=spooled(self.initial.weights))
        self.network.release()
        self._local: dict[SplitName, tuple[Split, ClientIndex]] = {}

    def deal(self, name: SplitName, split: Split, index: ClientIndex) -> None:
        """Assign examples of a split to every client, for `TorchLocalTrainer.evaluate`."""
        self._local[name] = split, index

    def local_examples(self, name: SplitName, client: int) -> Split:
        """Return the examples of a split that a client has: as assigned, or those it holds out for validation.

        Raises:
            RunError: The test split is still sealed.
        """
        if name in self._local:
            split, index = self._local[name]
            return split.at(index.of(client))
        if name == "test":
            raise RunError("the test split is sealed until the run ends, so no client can evaluate on it yet")
        return self._data.train.at(self.validation.of(client))

    def for_client(self, client: int, round_number: int) -> TorchLocalTrainer:
        """Return the trainer of one client in one round."""
        return TorchLocalTrainer(self, client, round_number)

    def batch(self, index: np.ndarray, augment: np.random.Generator | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs, augmented and normalised, and labels of the examples at some positions."""
        at = _tensor(index)
        inputs = self._inputs[at]
        if augment is not None:
            inputs = crop_and_flip(inputs, augment)
        return self.normalise(inputs), self._labels[at].to(self._device)

    def batches(
        self, index: np.ndarray, counts: np.ndarray, augments: Sequence[np.random.Generator] | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs and labels of one batch of several clients: clients x examples x shape.

        Args:
            index: Positions of the examples; a row for each client, padded at its end.
            counts: Number of examples of each client. Whole numbers as labels of the padding are `IGNORED`.
            augments: Random streams of the clients' augmentation.
        """
        at = torch.from_numpy(index)
        inputs = torch.index_select(self._inputs, 0, at.view(-1))  # several times as fast as by brackets
        labels = self._labels[at]
        if augments is not None:
            length = index.shape[1]
            for row, (rng, count) in enumerate(zip(augments[: len(counts)], counts.tolist(), strict=True)):
                part = slice(row * length, row * length + count)
                inputs[part] = crop_and_flip(inputs[part], rng)
        if labels.dtype == torch.int64 and counts.min() < index.shape[1]:
            labels[torch.arange(index.shape[1]) >= torch.from_numpy(counts).unsqueeze(1)] = IGNORED
        inputs = self.normalise(inputs)
        return inputs.view(*index.shape, *inputs.shape[1:]), labels.to(self._device)

    def plans(self, clients: Sequence[TorchLocalTrainer], steps: int | None, purpose: str) -> list[list[np.ndarray]]:
        """Return the batches of several clients in one round, those of training alone."""
        rngs = streams(self.seed, purpose, clients[0].round_number, [client.client for client in clients])
        return [client.plan(rng, steps) for client, rng in zip(clients, rngs, strict=True)]

    def normalise(self, inputs: torch.Tensor) -> torch.Tensor:
        """Normalise a batch of inputs.

        uint8 images become (x / 255 - mean) / std, in channels-last memory; floats become (x - mean) / std if the data
        are scaled. Floats are converted to the network's precision; token numbers are returned unchanged.
        """
        inputs = inputs.to(self._device)
        per_channel = (1, -1, *[1] * (inputs.dim() - 2))
        if inputs.dtype != torch.uint8:
            if not inputs.is_floating_point() or not self._data.is_scaled:
                return inputs.to(self._dtype) if inputs.is_floating_point() else inputs
            mean = torch.tensor(self._data.mean, dtype=self._dtype, device=self._device).view(per_channel)
            std = torch.tensor(self._data.std, dtype=self._dtype, device=self._device).view(per_channel)
            return inputs.to(self._dtype).sub(mean).div_(std)
        mean = torch.tensor(self._data.mean, device=self._device).view(per_channel)
        std = torch.tensor(self._data.std, device=self._device).view(per_channel)
        scaled = inputs.float().div_(255).sub_(mean).div_(std).to(self._dtype)
        return scaled.contiguous(memory_format=torch.channels_last) if scaled.dim() == 4 else scaled

    @property
    def num_classes(self) -> int:
        """Number of classes of the data."""
        return self._data.num_classes

    @property
    def num_tokens(self) -> int | None:
        """Number of token numbers, if inputs are tokens."""
        return self._data.num_tokens

    @property
    def padding(self) -> int | None:
        """Token number that fills up short texts, if known; negative if there is none."""
        return self._data.padding

    @property
    def label_kind(self) -> LabelKind:
        """Kind of the labels."""
        return self._data.kind

    @property
    def examples_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self._data.shape

    @property
    def is_augmented(self) -> bool:
        """True if training crops and mirrors images."""
        return self._data.is_augmented

    def evaluate(
        self,
        model: Model,
        split: Split | None = None,
        index: np.ndarray | None = None,
        scoring: Scoring | None = None,
    ) -> Metrics:
        """Evaluate a model on a split, or on training examples.

        Args:
            model: The model.
            split: Examples; None: the training examples.
            index: Positions of the examples to use; None: all.
            scoring: Metrics; None: those of the run.

        Returns:
            Sum of the loss and states of the metrics.
        """
        scoring = scoring or self._scoring
        self.network.load(model)
        self.network.module.eval()
        inputs = self._inputs if split is None else _shared(split.inputs)
        labels = self._labels if split is None else _shared(_as_int64(split.labels))
        at = _tensor(np.arange(len(labels)) if index is None else index)
        total, size = Metrics(0, 0.0, 0.0), _evaluation_batch(labels)
        with torch.inference_mode(), self.precision():
            for start in range(0, len(at), size):
                batch = at[start : start + size]  # batch by batch: data may be mapped from disk
                true = labels[batch].to(self._device)
                outputs = self.network.module(self.normalise(inputs[batch]))
                total += scoring.measure(outputs, true, float(self.loss(outputs, true)) * num_counted(true))
        self.network.release()
        return total

    def precision(self) -> AbstractContextManager[object]:
        """Return the context of mixed precision, which is used on devices other than the CPU, as in the paper."""
        return nullcontext() if self._device.type == "cpu" else torch.autocast(self._device.type, torch.bfloat16)

    @cached_property
    def forward_flops(self) -> int:
        """FLOPs per example of a forward pass, counted on two examples."""
        inputs, _ = self.batch(np.zeros(2, np.int64), None)
        self.network.module.eval()
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            self.network.module(inputs)
        return int(counter.get_total_flops()) // 2

    def flops_per_example(self, names: Collection[str] | None) -> int:
        """Return the FLOPs per example of a forward and backward pass by the named weights (None: all).

        They are counted once, on two examples.
        """
        key = None if names is None else tuple(sorted(names))
        if key not in self._flops:
            inputs, labels = self.batch(np.zeros(2, np.int64), None)
            self.network.differentiate(names)
            self.network.module.train()
            with self.network.keeping_statistics(), FlopCounterMode(display=False) as counter:
                self.loss(self.network.module(inputs), labels).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            self.network.differentiate(None)
            self._flops[key] = counter.get_total_flops() // 2
        return self._flops[key]


class TorchLocalTrainer:
    """One client in one round: its examples, its random streams, and a record of the work done."""

    def __init__(self, trainer: Trainer, client: int, round_number: int) -> None:
        """Refer to the shared trainer, so that an instance costs little."""
        self._trainer = trainer
        self.client = client
        self._round = self.round_number = round_number
        self._index = trainer.training.of(client)
        self.schema: ModelSchema = trainer.network.schema
        self.initial: Model = trainer.initial
        self.work = Work()

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose for this client and round."""
        return stream(self._trainer.seed, purpose, self._round, self.client)

    @property
    def num_examples(self) -> int:
        """Number of the client's training examples."""
        return len(self._index)

    @property
    def learning_rate(self) -> float:
        """Learning rate of this round."""
        local = self._trainer.local
        return local.optimizer.lr * local.lr_schedule.factor(self._round)

    def augmentation(self, purpose: str = "batches") -> np.random.Generator:
        """Return the random stream of augmentation."""
        return self.rng(f"augment {purpose}")

    def plan(self, rng: np.random.Generator, steps: int | None) -> list[np.ndarray]:
        """Return the batches of local training."""
        local, index = self._trainer.local, self._index
        if steps is not None:
            return list(self._batches(rng, local.batch, None, steps))
        starts = range(0, len(index) - 1, local.batch)
        orders = [index[rng.permutation(len(index))] for _ in range(local.epochs if len(starts) else 0)]
        return [order[start : start + local.batch] for order in orders for start in starts]

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """Train locally.

        Args:
            start: Model to start from.
            correction: Correction of every step; None: plain training.
            steps: Number of steps; None: the configured epochs.
            purpose: Name of the random stream of the batches.
        """
        trainer = self._trainer
        network, local = trainer.network, trainer.local
        network.load(start)
        network.differentiate(None)
        network.module.train()
        _seed_torch(trainer.seed, f"torch {purpose}", self._round, self.client)
        lr = self.learning_rate
        step = local.optimizer.stepper_of(network, lr)
        correct = _Corrector(network, correction, lr)
        augment = self.augmentation(purpose) if trainer.is_augmented else None
        epochs = local.epochs if steps is None else None
        num_steps = num_examples = 0
        began = perf_counter()
        for index in self._batches(self.rng(purpose), local.batch, epochs, steps):
            inputs, labels = trainer.batch(index, augment)
            network.gradient.zero_()
            with trainer.precision():
                loss = trainer.loss(network.module(inputs), labels)
            network.backward(loss)
            if local.clip_norm is not None:
                norm = float(torch.linalg.vector_norm(network.gradient))
                if norm > local.clip_norm:
                    network.gradient.mul_(local.clip_norm / norm)
            correct.before_step()  # after clipping: the correction is not part of the client's gradient
            step()
            correct.after_step()
            num_steps += 1
            num_examples += len(index)
        seconds = perf_counter() - began
        self.work += Work(num_steps, num_examples, 0, 0, num_examples * trainer.flops_per_example(None), seconds)
        del step
        trained = network.read()
        network.release()
        return Trained(trained, num_steps, len(self._index), lr, local.optimizer.momentum)

    def gradient(
        self,
        at: Model,
        names: Collection[str],
        plan: BatchPlan,
        purpose: str,
    ) -> Tensors:
        """Return the gradient of the mean loss with respect to the named weights, summed or averaged over batches.

        Running statistics that change here are lost, because every other operation loads its own model first.

        Args:
            at: Model to differentiate at.
            names: Names of the weights.
            plan: Number and size of the batches, whether they are averaged, and whether they are the same every round.
            purpose: Name of the random stream of the batches.
        """
        trainer, began = self._trainer, perf_counter()
        network = trainer.network
        network.load(at)
        network.differentiate(names)
        network.module.train(not plan.is_deterministic)
        round_number = 0 if plan.is_deterministic else self._round  # the same batches in every round
        _seed_torch(trainer.seed, f"torch {purpose}", round_number, self.client)
        rng = stream(trainer.seed, purpose, round_number, self.client)
        augment = self.rng(f"augment {purpose}") if trainer.is_augmented and not plan.is_deterministic else None
        network.gradient.zero_()
        num_gradients = num_examples = 0
        for index in self._batches(rng, plan.batch_size or trainer.local.batch, 1, plan.num_batches):
            inputs, labels = trainer.batch(index, augment)
            with trainer.precision():
                loss = trainer.loss(network.module(inputs), labels)
            network.backward(loss)
            num_gradients += 1
            num_examples += len(index)
        network.differentiate(None)
        gradient = network.read_gradient(names)
        if plan.is_mean and num_gradients > 1:
            gradient = scale(gradient, 1 / num_gradients)
        flops = num_examples * trainer.flops_per_example(names)
        self.work += Work(0, 0, num_gradients, num_examples, flops, perf_counter() - began)
        return gradient

    def loss(self, at: Model, purpose: str) -> float:
        """Return the mean loss of one batch, by a forward pass in evaluation mode, so that statistics do not change."""
        trainer, began = self._trainer, perf_counter()
        network = trainer.network
        network.load(at)
        network.module.eval()
        index = next(self._batches(self.rng(purpose), trainer.local.batch, 1, 1), self._index)
        augment = self.augmentation(purpose) if trainer.is_augmented else None
        with torch.inference_mode(), trainer.precision():
            inputs, labels = trainer.batch(index, augment)
            loss = float(trainer.loss(network.module(inputs), labels))
        self.work += Work(0, len(index), 0, 0, len(index) * trainer.forward_flops, perf_counter() - began)
        return loss

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """Evaluate a model on this client's examples of a split."""
        return self._trainer.evaluate(model, self._trainer.local_examples(split, self.client))

    def _batches(
        self, rng: np.random.Generator, size: int, epochs: int | None, limit: int | None
    ) -> Iterator[np.ndarray]:
        """Yield shuffled batches, epoch after epoch (None: endlessly), up to a limit.

        A last batch of one example is dropped, because batch normalisation cannot train on it.
        """
        starts = range(0, len(self._index) - 1, size)
        if not len(starts):
            return iter(())  # with endless epochs a single example would be shuffled forever
        epoch_numbers = range(epochs) if epochs is not None else count()
        shuffled = (self._index[rng.permutation(len(self._index))] for _ in epoch_numbers)
        batches = (order[start : start + size] for order in shuffled for start in starts)
        return islice(batches, limit)


class _Corrector:
    """Correction of every step: adds shift + pull * (w - anchor) to the gradient, before or after momentum."""

    def __init__(self, network: FlatNetwork, correction: Correction | None, lr: float) -> None:
        self._vector = network.vector.data
        self._gradient = network.gradient
        self._lr = lr
        self._is_before = correction is not None and correction.place == "before_momentum"
        self._is_after = correction is not None and correction.place == "after_momentum"
        self._pull = 0.0 if correction is None else correction.pull
        has_anchor = correction is not None and correction.anchor is not None and self._pull
        self._anchor = network.place(correction.anchor) if has_anchor else None  # type: ignore[union-attr,arg-type]
        # memory for w - anchor, allocated once
        self._difference = torch.empty_like(self._vector) if has_anchor else self._vector
        has_shift = correction is not None and correction.shift is not None
        self._shift = network.place(correction.shift) if has_shift else None  # type: ignore[union-attr,arg-type]

    def before_step(self) -> None:
        if self._is_before:
            self._add_to(self._gradient, 1.0)

    def after_step(self) -> None:
        if self._is_after:
            # a plain step along the correction, which the momentum buffer never sees
            self._add_to(self._vector, -self._lr)

    def _add_to(self, target: torch.Tensor, factor: float) -> None:
        if self._anchor is not None:
            torch.sub(self._vector, self._anchor, out=self._difference)
            target.add_(self._difference, alpha=factor * self._pull)
        if self._shift is not None:
            target.add_(self._shift, alpha=factor)


def device_of(name: str) -> torch.device:
    """Return the device of this process; `cuda` spreads workers over the CUDA devices by process id.

    Raises:
        ConfigError: Torch does not know the device, or there is none.
    """
    device = _named_device(name)
    if name == "cuda" and torch.cuda.is_available():
        return torch.device("cuda", os.getpid() % torch.cuda.device_count())
    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        kind = "CUDA" if device.type == "cuda" else device.type
        raise ConfigError(
            f"local.device is {name}, but torch finds no {kind} device here "
            f"({str(error).splitlines()[0].rstrip('.')}); set local.device: cpu"
        ) from None
    return device


def _named_device(name: str) -> torch.device:
    """Return the torch device of a name, which need not exist here."""
    try:
        return torch.device(name)
    except RuntimeError:
        raise ConfigError(
            f"local.device is {name!r}, which torch does not know; set cpu, cuda, or a device with its number, cuda:1"
        ) from None


def _tensor(array: np.ndarray) -> torch.Tensor:
    """Convert an array to a tensor; a read-only array is copied, because torch has no read-only tensors."""
    whole = np.ascontiguousarray(array)
    return torch.from_numpy(whole if whole.flags.writeable else whole.copy())


def _shared(array: np.ndarray) -> torch.Tensor:
    """Convert the data of a task to a tensor without a copy: they are large, perhaps read-only, and never written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns of read-only arrays
        return torch.from_numpy(np.ascontiguousarray(array))


def _as_int64(labels: np.ndarray) -> np.ndarray:
    """Convert integer labels to int64, which torch's losses need; others stay."""
    return labels.astype(np.int64, copy=False) if np.issubdtype(labels.dtype, np.integer) else labels


def _evaluation_batch(labels: torch.Tensor) -> int:
    """Return the number of examples of an evaluation batch; smaller for tokens, each of which has many scores."""
    if kind_of(labels) != "tokens":
        return _EVALUATION_BATCH
    return max(1, _EVALUATION_TOKENS // labels[0].numel()) if len(labels) else 1


def _seed_torch(seed: int, purpose: str, round_number: int, client: int) -> None:
    """Seed torch's generator, which initial weights and dropout draw from, by a named stream."""
    number = stream_seed(seed, purpose, round_number, client) >> 65
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.cuda.manual_seed_all(number)
    # not torch.manual_seed, which keeps a stack trace per call for absent devices: milliseconds per client
    torch.default_generator.manual_seed(number)
