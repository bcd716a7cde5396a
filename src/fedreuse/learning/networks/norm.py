"""Normalisation between the layers of an image network: over the batch, over groups of channels, or none."""

from __future__ import annotations

from typing import Literal, get_args

from torch import nn

from fedreuse.core.errors import require

__all__ = ["Norm", "check_norm", "norm_layer", "num_groups"]

Norm = Literal["batch", "group", "none"]
"""BatchNorm with running statistics, GroupNorm, or nothing; only the first has tensors that are not trained."""
_MOST_GROUPS = 32
"""The number of groups that Wu & He (2018) recommend."""
_FEWEST_CHANNELS = 4
"""In a group. One channel per group is instance normalisation, which takes away how strong a channel is beside others,
and a group of one channel and one pixel is always zero: a narrow network has fewer groups instead."""


def check_norm(norm: str) -> None:
    """Refuse an unknown name, also where the network is made in Python and not read from a configuration.

    Args:
        norm: `batch`, `group` or `none`.

    Raises:
        ConfigError: It is none of them.

    Example:
        >>> check_norm("group")
    """
    require(norm in get_args(Norm), f"network.norm must be one of {', '.join(get_args(Norm))}", norm)


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """The layer behind a convolution; it draws no random number, so that convolutions start the same with each.

    Args:
        norm: `batch`, `group` or `none`; `none` is a layer without weights that returns its input, so that the layers
            behind it keep their names.
        channels: Of the convolution, at least 1.

    Example:
        >>> norm_layer("group", 64).num_groups
        16
    """
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(num_groups(channels), channels) if norm == "group" else nn.Identity()


def num_groups(channels: int) -> int:
    """The largest divisor of the channels that is at most 32 and leaves at least 4 channels in a group; else 1.

    Args:
        channels: How many are divided, at least 1.

    Example:
        >>> [num_groups(channels) for channels in (3, 16, 32, 64, 128, 512)]
        [1, 4, 8, 16, 32, 32]
    """
    most = min(_MOST_GROUPS, channels // _FEWEST_CHANNELS)
    return max((groups for groups in range(2, most + 1) if channels % groups == 0), default=1)
