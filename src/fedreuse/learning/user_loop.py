"""Support for a training loop written by the user: gradients of its network, and corrected optimizer steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from fedreuse.core.corrections import Correction
from fedreuse.core.errors import RunError

if TYPE_CHECKING:
    from torch import nn

    from fedreuse.core.local_trainer import BatchPlan
    from fedreuse.core.model import Model
    from fedreuse.core.tensors import Tensors

__all__ = ["Losses", "Steps", "corrected", "gradient"]

Losses = Callable[["nn.Module"], Iterable[torch.Tensor]]
"""Function of a network that yields the loss of one batch after another."""


def gradient(
    network: nn.Module, losses: Losses, at: Mapping[str, np.ndarray], names: Collection[str], plan: BatchPlan
) -> tuple[dict[str, np.ndarray], int]:
    """Return the loss gradient with respect to the named weights, summed or averaged over batches, and their number.

    The app makes the batches: the plan decides their number, not their size.
    """
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in at.items()})
    network.train(not plan.is_deterministic)
    chosen = {name: weight for name, weight in network.named_parameters() if name in names}
    for weight in network.parameters():  # only the named weights need a backward pass
        weight.requires_grad_(False)
        weight.grad = None
    for weight in chosen.values():
        weight.requires_grad_(True)
    num_batches = 0
    for loss in islice(losses(network), plan.num_batches):
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        num_batches += 1
    divisor = num_batches if plan.is_mean and num_batches else 1
    # a weight that the loss does not depend on has no gradient: zero
    sums = {name: weight.grad if weight.grad is not None else weight.new_zeros(()) for name, weight in chosen.items()}
    gradients = {name: (total / divisor).expand(chosen[name].shape).cpu().numpy() for name, total in sums.items()}
    return gradients, num_batches


@dataclass
class Steps:
    """Observations of a training loop: number of optimizer steps, last learning rate and momentum."""

    count: int = 0
    lr: float = 0.0
    momentum: float = 0.0


@contextmanager
def corrected(network: nn.Module, start: Model, correction: Correction | None) -> Iterator[Steps]:
    """Correct and count every step of a torch optimizer in this process while the context is open.

    Args:
        network: Network with the same trained weights, in the same order, as that of the training loop.
        start: Received model, from which training must start.
        correction: Correction of every step; None: steps are only counted.

    Raises:
        RunError: The optimizer holds other weights, does not start from the received model, or is not the only one.
    """
    watch = _Watch(network, start, correction)
    hooks = register_optimizer_step_pre_hook(watch.before), register_optimizer_step_post_hook(watch.after)
    try:
        yield watch.steps
    finally:
        for hook in hooks:
            hook.remove()


class _Watch:
    """Optimizer hooks that add shift + pull * (w - anchor) to the gradient, before or after the momentum buffer."""

    def __init__(self, network: nn.Module, start: Model, correction: Correction | None) -> None:
        self.steps = Steps()
        self._names = [name for name, weight in network.named_parameters() if weight.requires_grad]
        self._start = start.weights
        self._correction = Correction() if correction is None else correction
        self._trained: list[_Trained] = []

    def before(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        del args, kwargs
        group = optimizer.param_groups[0]
        self.steps.count += 1
        self.steps.lr, self.steps.momentum = float(group["lr"]), float(group.get("momentum", 0.0))
        self._recognise([weight for group in optimizer.param_groups for weight in group["params"]])
        if self._correction.place == "before_momentum":
            for trained in self._trained:
                if trained.weight.grad is None:
                    trained.weight.grad = torch.zeros_like(trained.weight)
                trained.add_to(trained.weight.grad, 1.0, self._correction.pull)

    def after(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        del optimizer, args, kwargs
        if self._correction.place == "after_momentum":
            # the step is done: the correction is a step of its own, which momentum never sees
            for trained in self._trained:
                trained.add_to(trained.weight.data, -self.steps.lr, self._correction.pull)

    def _recognise(self, parameters: list[torch.Tensor]) -> None:
        """Require the weights of the received model at the first step, and the same tensors at later steps."""
        weights = [weight for weight in parameters if weight.requires_grad]
        if self._trained:
            if [id(weight) for weight in weights] != [id(trained.weight) for trained in self._trained]:
                raise RunError("the train function uses a second optimizer; a method that corrects steps supports one")
            return
        if len(weights) != len(self._names):
            raise RunError(
                f"the train function's optimizer holds {len(weights)} tensors, but the given network trains "
                f"{len(self._names)}; give the network that is trained, with the same layers frozen"
            )
        for weight, name in zip(weights, self._names, strict=True):
            # equal values show that this tensor is that weight, since an optimizer has no names
            received = _like(self._start, name, weight)
            if received is None or weight.shape != received.shape or not torch.equal(weight.detach(), received):
                raise RunError(
                    f"the train function's optimizer does not start from the received model: its tensor for "
                    f"{name} differs; load the received arrays before the first step, and give the optimizer "
                    "network.parameters() in their order"
                )
        correction = self._correction
        self._trained = [
            _Trained(weight, _like(correction.shift, name, weight), _like(correction.anchor, name, weight))
            for weight, name in zip(weights, self._names, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Trained:
    """A trained weight, and the correction of its gradient."""

    weight: torch.Tensor
    shift: torch.Tensor | None
    anchor: torch.Tensor | None

    @torch.no_grad()
    def add_to(self, target: torch.Tensor, factor: float, pull: float) -> None:
        if self.anchor is not None and pull:
            target.add_(self.weight - self.anchor, alpha=factor * pull)
        if self.shift is not None:
            target.add_(self.shift, alpha=factor)


def _like(tensors: Tensors | None, name: str, weight: torch.Tensor) -> torch.Tensor | None:
    """Return a tensor on the weight's device and of its type; a copy, because stored tensors are read-only."""
    if tensors is None or name not in tensors.schema.positions:
        return None
    return torch.from_numpy(np.array(tensors[name])).to(weight)
