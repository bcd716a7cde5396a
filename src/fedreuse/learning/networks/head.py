"""Which weights are a network's head: the module says it by `head_layers`, or it is the last layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from torch import nn

__all__ = ["told_head"]


def told_head(module: nn.Module) -> tuple[str, ...]:
    """Names of the trainable weights in the layers that the module calls its head; none if it does not say.

    Args:
        module: Its attribute, property or method `head_layers` gives the names of layers (or of single weights).

    Raises:
        ConfigError: A name in `head_layers` stands for no trainable weight.

    Example:
        >>> from torch import nn
        >>> module = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> told_head(module)
        ()
        >>> module.head_layers = ("2",)
        >>> told_head(module)
        ('2.weight', '2.bias')
    """
    told: Any = getattr(module, "head_layers", ())
    told = told() if callable(told) else told
    layers = (told,) if isinstance(told, str) else tuple(told)
    weights = [name for name, weight in module.named_parameters() if weight.requires_grad]
    first = {id(weight): name for name, weight in module.named_parameters()}  # tied weights have several names
    named = {name: first[id(weight)] for name, weight in module.named_parameters(remove_duplicate=False)}
    chosen = {layer: {known for name, known in named.items() if _is_in(name, layer)} & {*weights} for layer in layers}
    for layer in layers:
        if not chosen[layer]:
            known = {name.rpartition(".")[0] or name for name in weights}
            raise ConfigError(
                f"network: head_layers of {type(module).__name__} names {layer!r}, where no trainable weight is; "
                f"{suggest(str(layer), known)}"
            )
    return tuple(name for name in weights if any(name in those for those in chosen.values()))


def _is_in(name: str, layer: str) -> bool:
    return name == layer or name.startswith(f"{layer}.")
