"""The base class of codecs and their registry; parcels describe their own decoding."""

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
    """Base class of codecs: stateless compressors of tensors to parcels.

    Subclasses define `drops_coordinates` and `encode`; the other members have defaults.

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
        """True if coordinates that are not sent are decoded as zero."""

    @abstractmethod
    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Encode tensors.

        Args:
            tensors: The tensors, which may be a part of the schema.
            schema: The schema of the group.
            rng: Source of random numbers.
        """

    @property
    def is_exact(self) -> bool:
        """True if every coordinate is decoded bit-identically; False by default."""
        return False

    @property
    def expands(self) -> bool:
        """True if the error can be larger than the tensor, so that error feedback would diverge; False by default."""
        return False

    @property
    def uses_reference(self) -> bool:
        """True if `encode_against` uses its reference; False by default."""
        return False

    def encode_against(
        self, tensors: Tensors, schema: Schema, rng: np.random.Generator, reference: Tensors | None
    ) -> Parcel:
        """Encode tensors for a receiver that holds `reference`, of the same schema; by default the same as `encode`."""
        del reference
        return self.encode(tensors, schema, rng)

    def encode_kept(self, tensors: Tensors, schema: Schema, positions: np.ndarray) -> Parcel | None:
        """Encode the given positions of one tensor; None if the codec chooses other coordinates or draws randomly."""
        del tensors, schema, positions
        return None

    def by_ratio(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Callable[[float], Parcel]:
        """Return a function that encodes the same tensors at any ratio, for codecs that have a ratio."""
        return lambda ratio: with_ratio(self, ratio).encode(tensors, schema, rng)

    @property
    def for_everything(self) -> Codec:
        """A lossless codec for messages that must be complete, such as the first one of a `delta` link."""
        return codecs.parse("dense", "codec")


codecs: Registry[Codec] = Registry("codecs", "fedreuse.compression.codecs", base=Codec)


def require_contraction(codec: Codec, where: str) -> None:
    """Raise ConfigError for a codec that `expands`, whose error would grow without bound when fed back."""
    require(
        not codec.expands,
        f"{where}.codec must be contractive (its error smaller than the tensor), because the error is fed back and "
        "would grow; set unbiased: false (rand_k, eden, drive) or more bits (qsgd, ecuq), or choose another codec",
        codecs.name_of(codec),
    )
