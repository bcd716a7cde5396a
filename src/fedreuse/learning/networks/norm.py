"""Normalisation between the layers of an image network: over the batch, over groups of channels, or none."""

from __future__ import annotations

from typing import Literal, get_args

from torch import nn

from fedreuse.core.errors import require

__all__ = ["Norm", "check_norm", "norm_layer", "num_groups"]

Norm = Literal["batch", "group", "none"]
"""BatchNorm with running statistics, GroupNorm, or none; only BatchNorm has tensors that are not trained."""
_MOST_GROUPS = 32
"""The number of groups that Wu & He (2018) recommend."""
_FEWEST_CHANNELS = 4
"""Fewest channels in a group. One channel per group is instance normalisation, which removes the strength of a channel
relative to others, and a group of one channel and one pixel is always zero; a narrow network has fewer groups."""


def check_norm(norm: str) -> None:
    """Check the name of a normalisation, also for networks made in Python rather than read from a configuration.

    Args:
        norm: `batch`, `group` or `none`.

    Raises:
        ConfigError: The name is none of them.

    Example:
        >>> check_norm("group")
    """
    require(norm in get_args(Norm), f"network.norm must be one of {', '.join(get_args(Norm))}", norm)


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """Return the layer after a convolution; it draws no random number, so initial weights do not depend on it.

    Args:
        norm: `batch`, `group` or `none`; `none` is a layer without weights that returns its input, so that later
            layers keep their names.
        channels: Channels of the convolution, at least 1.

    Example:
        >>> norm_layer("group", 64).num_groups
        16
    """
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(num_groups(channels), channels) if norm == "group" else nn.Identity()


def num_groups(channels: int) -> int:
    """Return the largest divisor of the channels that is at most 32 and leaves at least 4 channels in a group, or 1.

    Args:
        channels: Number of channels, at least 1.

    Example:
        >>> [num_groups(channels) for channels in (3, 16, 32, 64, 128, 512)]
        [1, 4, 8, 16, 32, 32]
    """
    most = min(_MOST_GROUPS, channels // _FEWEST_CHANNELS)
    return max((groups for groups in range(2, most + 1) if channels % groups == 0), default=1)
