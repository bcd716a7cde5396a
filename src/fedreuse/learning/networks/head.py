"""The head of a network: the layers that its module names in `head_layers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from torch import nn

__all__ = ["declared_head"]


def declared_head(module: nn.Module) -> tuple[str, ...]:
    """Return the names of the trainable weights in the layers that a module declares as its head; none without.

    Args:
        module: A module; its attribute, property or method `head_layers` gives names of layers or of single weights.

    Raises:
        ConfigError: A name in `head_layers` matches no trainable weight.

    Example:
        >>> from torch import nn
        >>> module = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> declared_head(module)
        ()
        >>> module.head_layers = ("2",)
        >>> declared_head(module)
        ('2.weight', '2.bias')
    """
    declared: Any = getattr(module, "head_layers", ())
    declared = declared() if callable(declared) else declared
    layers = (declared,) if isinstance(declared, str) else tuple(declared)
    weights = [name for name, weight in module.named_parameters() if weight.requires_grad]
    # tied weights have several names, of which the schema knows the first
    first = {id(weight): name for name, weight in module.named_parameters()}
    first_name = {name: first[id(weight)] for name, weight in module.named_parameters(remove_duplicate=False)}
    chosen = {
        layer: {known for name, known in first_name.items() if f"{name}.".startswith(f"{layer}.")} & {*weights}
        for layer in layers
    }
    for layer in layers:
        if not chosen[layer]:
            known = {name.rpartition(".")[0] or name for name in weights}
            raise ConfigError(
                f"network: head_layers of {type(module).__name__} names {layer!r}, which has no trainable weight; "
                f"{suggest(str(layer), known)}"
            )
    return tuple(name for name in weights if any(name in names for names in chosen.values()))
