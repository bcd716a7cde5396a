"""Local training of several clients as one batched computation, for networks and data so small that calls dominate.

The weights of all clients are stacked, and every layer is one batched computation: written out for the usual layers of
small networks (`stacked`), by `torch.func.vmap` for others. Batches are those of training one by one, padded to the
same length; a padded example has no loss. Every tensor lies in one vector, tensor after tensor with the clients inside,
so that an elementwise optimizer takes one step for all.

Results equal those of training one by one up to rounding: sums are added in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.func import functional_call, vmap

from fedreuse.core.local_trainer import BatchPlan, Paused, SplitName, Trained, Work
from fedreuse.core.model import Model
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.learning.losses.loss import Loss
from fedreuse.learning.stacked.sequence import Sequence as StackedSequence
from fedreuse.learning.targets import IGNORED

if TYPE_CHECKING:
    from fedreuse.core.corrections import Correction
    from fedreuse.core.local_trainer import WaitingTrainer
    from fedreuse.core.metrics import Metrics
    from fedreuse.learning.trainer import TorchLocalTrainer, Trainer

__all__ = ["Group", "obstacle", "resolved_size"]

MOST_WEIGHTS = 200_000
"""Largest network that `auto` batches: the products of larger ones take longer than the calls that batching saves."""
MOST_FLOPS = 500_000
"""Most operations per example, forward and backward, up to which `auto` batches, for the same reason."""
MOST_FLOPS_IN_SEQUENCE = 8_000_000
"""The same for networks whose passes are written out (`stacked`), which pays for longer."""
_STACKED = 1 << 21
_LARGEST = 256
_GROUPS = 4
"""Limits of `auto`: weights of a stack, clients of a group, and groups of a cohort, so that several workers help."""


def resolved_size(together: int | str, trainer: Trainer, cohort: int) -> tuple[int, str]:
    """Return the clients of a group, and why they train one by one (empty if they do not).

    `auto` is a quarter of the cohort, at most 256 and at most 2^21 weights in all; networks of more than 200,000
    weights or 500,000 operations per example (8 million if their passes are written out) train one by one.
    """
    if together == 1:
        return 1, ""
    num_weights = trainer.network.schema.weights.size
    if together == "auto" and num_weights > MOST_WEIGHTS:
        return 1, f"{num_weights:,} weights, above the {MOST_WEIGHTS:,} up to which `auto` batches clients"
    reason = obstacle(trainer)
    if reason:
        return 1, reason
    most = MOST_FLOPS if StackedSequence.of(trainer.network.module) is None else MOST_FLOPS_IN_SEQUENCE
    if together == "auto" and (flops := trainer.flops_per_example(None)) > most:
        return 1, f"{flops:,} operations per example, above the {most:,} up to which `auto` batches clients"
    return (min(_LARGEST, _STACKED // num_weights, -(-cohort // _GROUPS)) if together == "auto" else int(together)), ""


def obstacle(trainer: Trainer) -> str:
    """Return why clients of this trainer cannot train together, with the name of the part; empty if they can."""
    if type(trainer.loss).terms is Loss.terms:
        return f"loss {type(trainer.loss).__name__} has no `terms`, the loss of each label"
    if not trainer.local.optimizer.is_elementwise:
        return f"optimizer {type(trainer.local.optimizer).__name__} is not marked `is_elementwise`"
    for name, module in trainer.network.module.named_modules():
        if any(True for _ in module.buffers(recurse=False)):
            return f"{type(module).__name__} ({name or 'network'}) has buffers, which would mix clients"
    try:
        _Stack(trainer, [trainer.initial, trainer.initial]).gradient(np.zeros((2, 2), np.int64), np.full(2, 2), None)
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"torch cannot batch {type(trainer.network.module).__name__} over clients: {lines[0].partition('. ')[0]}"
    return ""


@dataclass(frozen=True, eq=False)
class _Call:
    """Arguments of one call of `train`."""

    start: Model
    correction: Correction | None
    steps: int | None
    purpose: str

    @property
    def key(self) -> tuple[Any, ...]:
        """Calls with the same key are one computation."""
        correction = self.correction
        if correction is None:
            return self.steps, self.purpose
        parts = correction.anchor is None, correction.shift is None
        return self.steps, self.purpose, correction.place, correction.pull, *parts


class _Waiting:
    """A client's trainer in a group: every result is computed once, and returned again after `restart`."""

    def __init__(self, alone: TorchLocalTrainer) -> None:
        self.alone = alone
        self.schema, self.initial = alone.schema, alone.initial
        self.wanted: _Call | None = None
        self._is_read = False
        """True if the half has read anything that differs between clients."""
        self._results: list[Any] = []
        self._next = 0

    @property
    def client(self) -> int:
        """The client's id."""
        self._is_read = True
        return self.alone.client

    @property
    def work(self) -> Work:
        """The computation so far."""
        self._is_read = True
        return self.alone.work

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose for this client and round."""
        self._is_read = True
        return self.alone.rng(purpose)

    def follow(self, other: WaitingTrainer) -> bool:
        """Wait for the training that `other` waits for, if its half read nothing of its own client before."""
        assert isinstance(other, _Waiting)
        if other._is_read or other._results:
            return False
        self.wanted = other.wanted
        return True

    def restart(self) -> None:
        """Return the known results again, in the order of the calls."""
        self._next = 0

    def deliver(self, trained: Trained, work: Work) -> None:
        """Add the result of the training that was waited for."""
        self.alone.work = work if not self._results else self.alone.work + work
        self._results.append(trained)
        self.wanted = None

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """Return the result, or wait for the others of the group."""
        if self._next == len(self._results):
            self.wanted = _Call(start, correction, steps, purpose)
            raise Paused
        return self._known()  # type: ignore[no-any-return]  # results are of the type of the call

    def gradient(self, at: Model, names: Collection[str], plan: BatchPlan, purpose: str) -> Tensors:
        """Return the gradient, computed alone."""
        if self._next == len(self._results):
            self._results.append(self.alone.gradient(at, names, plan, purpose))
        return self._known()  # type: ignore[no-any-return]

    def loss(self, at: Model, purpose: str) -> float:
        """Return the loss of a batch, computed alone."""
        if self._next == len(self._results):
            self._results.append(self.alone.loss(at, purpose))
        return self._known()  # type: ignore[no-any-return]

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """Return the scores, computed alone."""
        if self._next == len(self._results):
            self._results.append(self.alone.evaluate(model, split))
        return self._known()  # type: ignore[no-any-return]

    def _known(self) -> Any:
        self._next += 1
        return self._results[self._next - 1]


class Group:
    """Training of up to `size` clients of one trainer at once."""

    def __init__(self, trainer: Trainer, size: int) -> None:
        self._trainer, self.size = trainer, size

    def trainers(self, clients: Sequence[int], round_number: int) -> list[WaitingTrainer]:
        """Return the trainers of a group, in the order of the clients."""
        made = (_Waiting(self._trainer.for_client(client, round_number)) for client in clients)
        return [cast("WaitingTrainer", one) for one in made]  # its `client` is read-only, to notice who reads it

    def train(self, paused: Sequence[WaitingTrainer]) -> None:
        """Compute the training that each of these trainers waits for."""
        by_key: dict[tuple[Any, ...], list[_Waiting]] = {}
        for waiting in paused:
            assert isinstance(waiting, _Waiting)
            assert waiting.wanted is not None
            by_key.setdefault(waiting.wanted.key, []).append(waiting)
        for clients in by_key.values():
            self._train(clients)

    def _train(self, clients: list[_Waiting]) -> None:
        began, trainer = perf_counter(), self._trainer
        calls = [waiting.wanted for waiting in clients if waiting.wanted is not None]
        plans = trainer.plans([waiting.alone for waiting in clients], calls[0].steps, calls[0].purpose)
        # clients with the most steps first: those that still train are then always the first ones of the stack
        order = sorted(range(len(clients)), key=lambda at: -len(plans[at]))
        plans = [plans[at] for at in order]
        stack = _Stack(trainer, [calls[at].start for at in order])
        lr = clients[0].alone.learning_rate
        purpose = calls[0].purpose
        augments = [clients[at].alone.augmentation(purpose) for at in order] if trainer.is_augmented else None
        rows = stack.train(plans, augments, [calls[at].correction for at in order], lr)
        rows.flags.writeable = False
        examples = [sum(map(len, plan)) for plan in plans]
        seconds = (perf_counter() - began) / max(1, sum(examples))
        schema, momentum = trainer.network.schema.weights, trainer.local.optimizer.momentum
        flops = trainer.flops_per_example(None)
        for at, plan, row, count in zip(order, plans, rows, examples, strict=True):
            start, steps = calls[at].start, len(plan)
            model = Model(Tensors(schema, row), start.buffers, start.counters)
            work = Work(steps, count, 0, 0, count * flops, count * seconds)
            clients[at].deliver(Trained(model, steps, clients[at].alone.num_examples, lr, momentum), work)


class _Stack:
    """The weights of several clients in one vector, and their gradient in another."""

    def __init__(self, trainer: Trainer, starts: Sequence[Model]) -> None:
        self._trainer, self._count = trainer, len(starts)
        trainer.network.module.train()
        self._schema = trainer.network.schema.weights
        self.vector = torch.nn.Parameter(self._placed([start.weights for start in starts]))
        self._gradient = torch.zeros_like(self.vector.data)
        self.vector.grad = self._gradient
        self._blocks: list[torch.Tensor] = []
        self._leaves: dict[str, torch.Tensor] = {}
        self._gradients: dict[str, torch.Tensor] = {}
        is_here = self.vector.device.type == "cpu"  # elsewhere products are of mixed precision, left to autograd
        self._layers = StackedSequence.of(trainer.network.module) if is_here else None
        for spec, start in zip(self._schema, self._schema.offsets, strict=False):
            part = slice(self._count * start, self._count * (start + spec.size))
            block = self.vector.data[part].view(self._count, *spec.shape)
            self._blocks.append(block.view(self._count, -1))
            self._leaves[spec.name] = block.detach().requires_grad_()
            self._gradients[spec.name] = self._gradient[part].view(self._count, *spec.shape)
            self._leaves[spec.name].grad = self._gradients[spec.name]

    def _placed(self, tensors: Sequence[Tensors]) -> torch.Tensor:
        """Return the tensors of all clients as one vector, tensor after tensor."""
        first = tensors[0]
        if all(other is first for other in tensors):
            rows = np.broadcast_to(to_dense(first).values, (self._count, self._schema.size))
        else:
            rows = np.stack([to_dense(one).values for one in tensors])
        offsets = self._schema.offsets
        pieces = [rows[:, start:stop].reshape(-1) for start, stop in pairwise(offsets)]
        return torch.from_numpy(np.concatenate(pieces)).to(self._trainer.network.vector.device)

    def train(
        self,
        plans: Sequence[Sequence[np.ndarray]],
        augments: Sequence[np.random.Generator] | None,
        corrections: Sequence[Correction | None],
        lr: float,
    ) -> np.ndarray:
        """Return the trained weights, a row for each client; `plans` are their batches, the longest plan first."""
        local = self._trainer.local
        step = local.optimizer.stepper(self.vector, lr)
        correct = _Corrections(self, corrections, lr)
        rows = np.empty((self._count, self._schema.size), self._schema.dtype)
        num_active = self._count
        for number in range(len(plans[0]) + 1):
            before = num_active
            while num_active and len(plans[num_active - 1]) == number:
                num_active -= 1
            self._read(rows, num_active, before)  # the others end here; later steps move only their remains
            if not num_active:
                break
            batches = [plan[number] for plan in plans[:num_active]]
            counts = np.array([len(batch) for batch in batches])
            index = np.zeros((num_active, counts.max()), np.int64)
            for row, batch in zip(index, batches, strict=True):
                row[: len(batch)] = batch
            self.gradient(index, counts, augments)
            if local.clip_norm is not None:
                self._clip(local.clip_norm)
            correct.before_step()
            step()
            correct.after_step()
        return rows

    def gradient(self, index: np.ndarray, counts: np.ndarray, augments: Sequence[np.random.Generator] | None) -> None:
        """Compute the gradients of the first clients, given their padded batches and the examples in each."""
        trainer, num_active = self._trainer, len(counts)
        inputs, labels = trainer.batches(index, counts, augments)
        leaves = self._leaves
        if num_active < self._count:
            self._gradient.zero_()
            leaves = {name: leaf[:num_active] for name, leaf in leaves.items()}
        if self._layers is not None:
            at_once = self._layers.clients_at_once or num_active
            for start in range(0, num_active, at_once):
                part = slice(start, min(start + at_once, num_active))
                weights = {name: leaf.detach()[part] for name, leaf in leaves.items()}
                outputs = self._layers.forward(weights, inputs[part])
                gradients = {name: gradient[part] for name, gradient in self._gradients.items()}
                self._layers.backward(weights, gradients, self._slopes(outputs, labels[part], counts[part]))
            return

        def scores(weights: dict[str, torch.Tensor], batch: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = functional_call(trainer.network.module, weights, (batch,))
            return output

        self._gradient.zero_()
        with trainer.precision():
            outputs = vmap(scores, randomness="error")(leaves, inputs)
        outputs.backward(self._slopes(outputs, labels, counts))  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def _slopes(self, outputs: torch.Tensor, labels: torch.Tensor, counts: np.ndarray) -> torch.Tensor:
        """Return the derivatives by the outputs of the sum of the clients' losses, each the mean over its labels."""
        num_active = len(counts)
        slopes = self._trainer.loss.slopes(outputs.flatten(0, 1), labels.flatten(0, 1)).view_as(outputs)
        shares = torch.zeros(labels.shape[:2], dtype=slopes.dtype)
        if labels.dtype == torch.int64:  # padded examples have labels that do not count
            numbers = (labels != IGNORED).view(num_active, -1).sum(1).cpu()
            shares[:] = (1 / numbers).unsqueeze(1)
        else:
            width = labels[0, 0].numel()
            for row, count in zip(shares, counts.tolist(), strict=True):
                row[:count] = 1 / (count * width)
        return slopes.mul_(shares.to(slopes.device).view(*shares.shape, *[1] * (slopes.dim() - 2)))

    def _clip(self, limit: float) -> None:
        parts = [leaf.grad.view(self._count, -1) for leaf in self._leaves.values() if leaf.grad is not None]
        norms = torch.stack([part.square().sum(1) for part in parts]).sum(0).sqrt()
        factors = torch.where(norms > limit, limit / norms, torch.ones_like(norms)).unsqueeze(1)
        for part in parts:
            part.mul_(factors)

    def _read(self, rows: np.ndarray, start: int, stop: int) -> None:
        if start < stop:
            for block, at, end in zip(self._blocks, self._schema.offsets, self._schema.offsets[1:], strict=False):
                rows[start:stop, at:end] = block[start:stop].cpu().numpy()

    def placed(self, tensors: Sequence[Tensors]) -> torch.Tensor:
        """Return tensors shaped like the weights, one per client, in the order of `vector`."""
        return self._placed(tensors)


class _Corrections:
    """Corrections of every step; see `trainer._Corrector`, which has the same arithmetic for one client."""

    def __init__(self, stack: _Stack, corrections: Sequence[Correction | None], lr: float) -> None:
        self._vector, self._gradient, self._lr = stack.vector.data, stack.vector.grad, lr
        known = [correction for correction in corrections if correction is not None]
        self._place = known[0].place if known else None
        self._pull = known[0].pull if known else 0.0
        anchors = [one.anchor for one in known if one.anchor is not None]
        shifts = [one.shift for one in known if one.shift is not None]
        self._anchor = stack.placed(anchors) if anchors and self._pull else None
        self._shift = stack.placed(shifts) if shifts else None

    def before_step(self) -> None:
        if self._place == "before_momentum" and self._gradient is not None:
            self._add_to(self._gradient, 1.0)

    def after_step(self) -> None:
        if self._place == "after_momentum":
            self._add_to(self._vector, -self._lr)

    def _add_to(self, target: torch.Tensor, factor: float) -> None:
        if self._anchor is not None:
            target.add_(self._vector - self._anchor, alpha=factor * self._pull)
        if self._shift is not None:
            target.add_(self._shift, alpha=factor)
