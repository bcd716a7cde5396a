"""What a codec is: tensors in, a parcel out; the parcel's blocks tell how to come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from fedreuse.compression.codecs.ratio import with_ratio
from fedreuse.core.errors import require
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Codec", "codecs", "require_contraction"]


class Codec(ABC):
    """Base class of codecs: stateless representations of tensors as parcels.

    A codec defines `drops_coordinates` and `encode`; the other members have defaults.

    Example:
        >>> import numpy as np
        >>> from fedreuse import Schema, Tensors, TensorSpec, registries
        >>> schema = Schema((TensorSpec("w", (4,)),))
        >>> codec = registries["codecs"].parse({"name": "top_k", "ratio": 0.25}, "codec")
        >>> parcel = codec.encode(Tensors(schema, np.float32([4, 1, -5, 2])), schema, np.random.default_rng(0))
        >>> parcel.decode(schema)["w"].tolist(), parcel.field_bytes
        ([0.0, 0.0, -5.0, 0.0], 5)
    """

    @property
    @abstractmethod
    def drops_coordinates(self) -> bool:
        """Whether coordinates are left out, so that they arrive as zero."""

    @abstractmethod
    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Pack tensors, which may be a part of the schema."""

    @property
    def is_exact(self) -> bool:
        """Whether every coordinate arrives bit for bit."""
        return False

    @property
    def expands(self) -> bool:
        """Whether the error can be larger than the tensor itself, so that feeding it back would let it grow."""
        return False

    @property
    def uses_reference(self) -> bool:
        """Whether `encode_against` makes use of its reference."""
        return False

    def encode_against(
        self, tensors: Tensors, schema: Schema, rng: np.random.Generator, reference: Tensors | None
    ) -> Parcel:
        """Pack tensors for a receiver that holds `reference`, of the same shapes; as `encode`, unless it is used."""
        del reference
        return self.encode(tensors, schema, rng)

    def encode_kept(self, tensors: Tensors, schema: Schema, positions: np.ndarray) -> Parcel | None:
        """As `encode` of one tensor whose largest coordinates are known; None where it draws, or keeps others."""
        del tensors, schema, positions
        return None

    def by_ratio(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Callable[[float], Parcel]:
        """`encode` of the same tensors at one ratio after the other, for codecs that have a ratio."""
        return lambda ratio: with_ratio(self, ratio).encode(tensors, schema, rng)

    @property
    def for_everything(self) -> Codec:
        """The codec for what must arrive whole, such as the first message of a link that sends differences."""
        return codecs.parse("dense", "codec")


codecs: Registry[Codec] = Registry("codecs", "fedreuse.compression.codecs", base=Codec)


def require_contraction(codec: Codec, where: str) -> None:
    """Refuse a codec that `expands` where its errors come back: they would grow without end."""
    require(
        not codec.expands,
        f"{where}.codec must not err by more than the tensor's own size, because the error is fed back and would grow; "
        "say unbiased: false (rand_k) or more bits (qsgd, ecuq), or choose another codec",
        codecs.name_of(codec),
    )
