"""Named methods of the literature: each is a conversation with its parts filled in, and the links it is defined by.

`fedreuse describe NAME` shows what a name expands to. Equations, costs and traps are on the cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.qsgd import Qsgd
from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.links.clag import Clag as ClagLink
from fedreuse.compression.links.delta import Delta
from fedreuse.compression.links.econtrol import EControl as EControlLink
from fedreuse.compression.links.ef21 import Ef21 as Ef21Link
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.links.laq import Laq as LaqLink
from fedreuse.compression.links.lbgm import Lbgm as LbgmLink
from fedreuse.compression.links.momentum import Momentum
from fedreuse.compression.links.plain import Plain
from fedreuse.compression.wire.modes.innovation import MAX_BITS
from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.alias import Alias, alias
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.fedstale import FedStale
from fedreuse.methods.mifa import Mifa
from fedreuse.methods.movement import Movement
from fedreuse.methods.server_steps.adaptive import AdagradStep, AdamStep, AdaptiveStep, YogiStep
from fedreuse.methods.server_steps.extrapolation import ExtrapolationStep
from fedreuse.methods.server_steps.momentum import MomentumStep
from fedreuse.methods.server_steps.sgd import SgdStep
from fedreuse.methods.server_steps.ternary import TernaryStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import Link, MethodConfig
    from fedreuse.core.population import Weighting

__all__ = [
    "Clag", "EControl", "Ef21", "Ef21Sgdm", "FedAdagrad", "FedAdam", "FedAvg", "FedAvgM", "FedEf", "FedExp", "FedPaq",
    "FedProx", "FedVarp", "FedYogi", "Laq", "Lbgm", "StcUp", "StcUpDown",
]  # fmt: skip

Estimates = Literal["participants", "all"]


def _averaging(server_lr: float, weighting: Weighting = "ratio", prox: float = 0.0) -> Averaging:
    return Averaging(prox, Mean(weighting), SgdStep(server_lr))


def _estimates(agg: Estimates, server_lr: float) -> MethodConfig:
    """The server averages the estimates of the cohort, as FedAvg does with updates; or everybody's, as MIFA does."""
    return _averaging(server_lr) if agg == "participants" else Mifa(server_lr=server_lr)


# FedAvg and its server steps


@alias("fedavg")
@dataclass(frozen=True)
class FedAvg(Alias):
    """Average the selected clients' updates, weighted by their examples, and add them to the model.

    Args:
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: fedavg`.
    """

    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> Averaging:
        """Averaging as it is."""
        return _averaging(self.server_lr, self.weighting)


@alias("fedprox")
@dataclass(frozen=True)
class FedProx(Alias):
    """FedAvg with a pull of strength mu towards the received model in every local step.

    Args:
        mu: Strength of the pull towards the received model in every local step, not negative.
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: {name: fedprox, mu: 0.01}`.
    """

    mu: float = 5e-4
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> Averaging:
        """Averaging with a pull."""
        return _averaging(self.server_lr, self.weighting, self.mu)


@alias("fedavgm")
@dataclass(frozen=True)
class FedAvgM(Alias):
    """FedAvg whose average update passes through momentum at the server.

    Args:
        server_lr: Factor on the direction that the server adds, not negative.
        beta: Momentum at the server, in [0, 1).
        nesterov: Nesterov's form of it.

    Example: `method: {name: fedavgm, beta: 0.9}`.
    """

    server_lr: float = 0.3
    beta: float = 0.9
    nesterov: bool = False

    def expand(self) -> Averaging:
        """Averaging with a momentum step."""
        return Averaging(step=MomentumStep(self.server_lr, self.beta, self.nesterov))


@dataclass(frozen=True)
class _AdaptiveServer(Alias):
    """FedAvg with an adaptive server optimizer (Reddi et al., 2021).

    Args:
        server_lr: The server's learning rate, not negative.
        beta1: Decay of the mean of directions, in [0, 1).
        beta2: Decay of the mean of squares, in [0, 1).
        tau: Added to the root of the mean of squares, positive.
        v0: First value of the mean of squares; null is tau squared.
        bias_correction: Divide both means by what the decays leave of a constant, as Adam does.
    """

    server_lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: float | None = None
    bias_correction: bool = False

    optimizer: ClassVar[type[AdaptiveStep]]

    def expand(self) -> Averaging:
        """Return averaging with the step of the optimizer."""
        numbers = (self.server_lr, self.beta1, self.beta2, self.tau, self.v0, self.bias_correction)
        return Averaging(step=self.optimizer(*numbers))


@alias("fedadam")
@dataclass(frozen=True)
class FedAdam(_AdaptiveServer):
    """FedAvg whose average update passes through Adam at the server.

    Example: `method: {name: fedadam, server_lr: 0.01}`.
    """

    optimizer: ClassVar[type[AdaptiveStep]] = AdamStep


@alias("fedyogi")
@dataclass(frozen=True)
class FedYogi(_AdaptiveServer):
    """FedAvg whose average update passes through Yogi at the server.

    Example: `method: {name: fedyogi, server_lr: 0.01}`.
    """

    optimizer: ClassVar[type[AdaptiveStep]] = YogiStep


@alias("fedadagrad")
@dataclass(frozen=True)
class FedAdagrad(_AdaptiveServer):
    """FedAvg whose average update passes through Adagrad at the server.

    Example: `method: {name: fedadagrad, server_lr: 0.01}`.
    """

    beta1: float = 0.0

    optimizer: ClassVar[type[AdaptiveStep]] = AdagradStep


@alias("fedexp")
@dataclass(frozen=True)
class FedExp(Alias):
    """FedAvg whose step grows with how much the updates differ from each other; nothing else to tune at the server.

    Args:
        eps: Added to the squared norm of the mean update, positive: larger steps less far.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: {name: fedexp, eps: 0.01}`.
    """

    eps: float = 1e-3
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> Averaging:
        """Averaging with an extrapolation step."""
        return Averaging(aggregate=Mean(self.weighting), step=ExtrapolationStep(self.eps))


# FedAvg through a link or a codec of its own


@alias("fedpaq")
@dataclass(frozen=True)
class FedPaq(Alias):
    """FedAvg with updates rounded at random to a few levels per bucket: unbiased, no memory at either end.

    Args:
        bits: Bits per coordinate with the sign, from 2 to 8.
        bucket: Coordinates that share one scale, at least 1.
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: {name: fedpaq, bits: 4}`.
    """

    bits: int = 4
    bucket: int = 512
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The quantiser, without memory."""
        return {"update": Plain(Qsgd(self.bits, self.bucket))}

    def expand(self) -> Averaging:
        """FedAvg."""
        return _averaging(self.server_lr, self.weighting)


@alias("fed_ef")
@dataclass(frozen=True)
class FedEf(Alias):
    """FedAvg on compressed updates; what the codec drops is added to the client's next update.

    Args:
        codec: What is sent; anything that drops or rounds, as long as it contracts.
        decay: Share of the residual that is kept at each participation, in (0, 1].
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: {name: fed_ef, codec: {name: top_k, ratio: 0.1}}`.
    """

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    decay: float = 1.0
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Error feedback around the codec."""
        return {"update": ErrorFeedback(self.codec, self.decay)}

    def expand(self) -> Averaging:
        """FedAvg; the link does the rest."""
        return _averaging(self.server_lr, self.weighting)


@alias("stc_up")
@dataclass(frozen=True)
class StcUp(Alias):
    """FedAvg with sparse ternary updates; what is dropped waits at the client. The model travels dense.

    Args:
        ratio: Share of the coordinates that is sent, in (0, 1].
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: {name: stc_up, ratio: 0.05}`.
    """

    ratio: float = 0.2
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Ternary updates with error feedback, without which they do not converge."""
        return {"update": ErrorFeedback(Ternary(self.ratio))}

    def expand(self) -> Averaging:
        """FedAvg."""
        return _averaging(self.server_lr, self.weighting)


@alias("stc_updown")
@dataclass(frozen=True)
class StcUpDown(Alias):
    """Sparse ternary updates up and sparse ternary steps of the model, with error feedback at both ends.

    Args:
        ratio: Share of the coordinates that a client sends, in (0, 1].
        server_ratio: Share of the coordinates that the server moves in a round, in (0, 1].
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: {name: stc_updown, ratio: 0.05}`.
    """

    ratio: float = 0.2
    server_ratio: float = 0.2
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Ternary updates with error feedback."""
        return {"update": ErrorFeedback(Ternary(self.ratio))}

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """What changed since the client was last there, to the bit: a rounded copy would soon differ everywhere."""
        return {"model": Delta(Nonzero(), arithmetic="bits")}

    def expand(self) -> Averaging:
        """Averaging with a server step that is itself ternary."""
        return Averaging(aggregate=Mean(self.weighting), step=TernaryStep(self.server_ratio, self.server_lr))


@alias("lbgm")
@dataclass(frozen=True)
class Lbgm(Alias):
    """FedAvg; a tensor whose update has hardly turned since it was last sent travels as one number.

    Args:
        threshold: The largest squared sine between two directions at which one number stands for a tensor.
        granularity: Decide for each `tensor`, or once for the whole `model`.
        codec: How a tensor is sent when it is sent.
        residual: Remember what did not get through and add it to the next update; `separate` keeps what the codec
            dropped and what the projection left out apart, and adds the latter after the codec, as the authors'
            steps do.
        server_lr: Factor on the direction that the server adds, not negative.

    Example: `method: {name: lbgm, threshold: 0.2}`.
    """

    threshold: float = 0.2
    granularity: Literal["tensor", "model"] = "tensor"
    codec: Codec = part(codecs, "dense")
    residual: bool | Literal["separate"] = False
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that makes it LBGM."""
        return {"update": LbgmLink(self.threshold, self.granularity, self.codec, self.residual)}

    def expand(self) -> Averaging:
        """FedAvg."""
        return _averaging(self.server_lr)


# estimates of the clients' updates, kept at both ends by a link


@alias("ef21")
@dataclass(frozen=True)
class Ef21(Alias):
    """Average estimates of the clients' updates, which compressed differences keep up to date.

    Args:
        agg: `all` averages the estimates of every client, as published; `participants` those of the cohort alone, which
            does not converge at partial participation.
        codec: What is sent of the difference; it must contract (`top_k`, `ternary`, ...).
        server_lr: Factor on the direction that the server adds, not negative.

    Example: `method: {name: ef21, codec: {name: top_k, ratio: 0.1}}`.
    """

    agg: Estimates = "all"
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that keeps the estimates."""
        return {"update": Ef21Link(self.codec)}

    def expand(self) -> MethodConfig:
        """FedAvg, or MIFA."""
        return _estimates(self.agg, self.server_lr)


@alias("ef21_sgdm")
@dataclass(frozen=True)
class Ef21Sgdm(Alias):
    """EF21 whose clients compress a moving average of their updates, so that noise is averaged out beforehand.

    Args:
        eta: Share of the new update in the average, in (0, 1]; 1 is EF21.
        agg: `all` averages the estimates of every client, as published; `participants` those of the cohort alone, which
            does not converge at partial participation.
        codec: What is sent of the difference; it must contract (`top_k`, `ternary`, ...).
        server_lr: Factor on the direction that the server adds, not negative.

    Example: `method: {name: ef21_sgdm, eta: 0.1, codec: {name: top_k, ratio: 0.1}}`.
    """

    eta: float = 0.1
    agg: Estimates = "all"
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Momentum before the link that keeps the estimates."""
        return {"update": Momentum(Ef21Link(self.codec), self.eta)}

    def expand(self) -> MethodConfig:
        """FedAvg, or MIFA."""
        return _estimates(self.agg, self.server_lr)


@alias("econtrol")
@dataclass(frozen=True)
class EControl(Alias):
    """EF21 whose clients also send a share of all that their estimates have lacked so far.

    Args:
        eta: Share of the accumulated error in every message, in [0, 1]; 0 is EF21.
        agg: `all` averages the estimates of every client, as published; `participants` those of the cohort alone, which
            does not converge at partial participation.
        codec: What is sent of the difference; it must contract (`top_k`, `ternary`, ...).
        server_lr: Factor on the direction that the server adds, not negative.

    Example: `method: {name: econtrol, codec: {name: top_k, ratio: 0.1}}`.
    """

    eta: float = 0.1
    agg: Estimates = "all"
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that keeps estimates and errors."""
        return {"update": EControlLink(self.codec, self.eta)}

    def expand(self) -> MethodConfig:
        """FedAvg, or MIFA."""
        return _estimates(self.agg, self.server_lr)


@alias("clag")
@dataclass(frozen=True)
class Clag(Alias):
    """Average estimates that clients correct only when they are off by more than zeta times the update's movement.

    Args:
        zeta: How much an estimate may be off before anything is sent, not negative.
        codec: What is sent of the difference; it must contract (`top_k`, `ternary`, ...).
        max_lag: Send at least in every so many participations, at least 1; the number of rounds means never.
        agg: `all` averages the estimates of every client, as published; `participants` those of the cohort alone, which
            does not converge at partial participation.
        server_lr: Factor on the direction that the server adds, not negative.

    Example: `method: {name: clag, zeta: 4}`.
    """

    zeta: float = 1.0
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    max_lag: int | None = 10
    agg: Estimates = "all"
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that keeps the estimates, and its silence."""
        return {"update": ClagLink(self.zeta, self.codec, self.max_lag)}

    def expand(self) -> MethodConfig:
        """FedAvg, or MIFA."""
        return _estimates(self.agg, self.server_lr)


@alias("laq")
@dataclass(frozen=True)
class Laq(Alias):
    """Average estimates that clients correct by quantised innovations, and not at all while these are small.

    The paper steps by a sum, theta <- theta - a sum_m Q_m, and compares gradients with moves / (a M)^2. In updates,
    delta_m = -(a M / server_lr) g_m, that is moves / server_lr^2.

    Args:
        bits: Bits per coordinate, from 1 to 32.
        depth: How many of the model's last moves count, at least 1.
        xi: Their weight in all, not negative.
        max_lag: Send at least in every so many participations, at least 1; the number of rounds means never.
        agg: `all` averages the estimates of every client, as published; `participants` those of the cohort alone, which
            does not converge at partial participation.
        server_lr: Factor on the direction that the server adds, not negative.

    Example: `method: {name: laq, bits: 4}`.
    """

    bits: int = 4
    depth: int = 10
    xi: float = 0.8
    max_lag: int | None = 100
    agg: Estimates = "all"
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(1 <= self.bits <= MAX_BITS, f"method.bits must be in 1 .. {MAX_BITS}", self.bits)
        super().__post_init__()

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that quantises and stays silent."""
        return {"update": LaqLink(self.bits, self.max_lag)}

    def expand(self) -> Movement:
        """FedAvg, or MIFA, which also tells how far the model moved."""
        xi = self.xi / self.server_lr**2 if self.server_lr else 0.0  # without a step nothing moves
        return Movement(_estimates(self.agg, self.server_lr), self.depth, xi)


# server memory


@alias("fedvarp")
@dataclass(frozen=True)
class FedVarp(Alias):
    """Fresh updates corrected by what absent clients last sent, as SAGA does with gradients.

    Args:
        server_lr: Factor on the direction that the server adds, not negative.
        weighting: `ratio`: by examples among those who answered; `ht`: unbiased over uniform draws of the
            cohort.

    Example: `method: fedvarp`.
    """

    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> FedStale:
        """FedStale with beta 1."""
        return FedStale(1.0, self.server_lr, self.weighting)
