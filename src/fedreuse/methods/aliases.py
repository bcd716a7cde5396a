"""Named methods of the literature: each is a method with given parts, and the links that define it.

`fedreuse describe NAME` shows what a name expands to. Equations, costs and pitfalls are on the method cards.
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
    """Return a method that averages the estimates of the cohort, as FedAvg does, or of all clients, as MIFA does."""
    return _averaging(server_lr) if agg == "participants" else Mifa(server_lr=server_lr)


# FedAvg and its server steps


@alias("fedavg")
@dataclass(frozen=True)
class FedAvg(Alias):
    """FedAvg: the selected clients' updates, weighted by their examples, are averaged and added to the model.

    Args:
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

    Example: `method: fedavg`.
    """

    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> Averaging:
        """Return averaging with its defaults."""
        return _averaging(self.server_lr, self.weighting)


@alias("fedprox")
@dataclass(frozen=True)
class FedProx(Alias):
    """FedProx: FedAvg with a proximal term mu, which pulls every local step towards the received model.

    Args:
        mu: Strength of the proximal term, which pulls every local step towards the received model; at least 0.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

    Example: `method: {name: fedprox, mu: 0.01}`.
    """

    mu: float = 5e-4
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> Averaging:
        """Return averaging with a proximal term."""
        return _averaging(self.server_lr, self.weighting, self.mu)


@alias("fedavgm")
@dataclass(frozen=True)
class FedAvgM(Alias):
    """FedAvg with server momentum.

    Args:
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        beta: Server momentum, in [0, 1).
        nesterov: Use Nesterov momentum.

    Example: `method: {name: fedavgm, beta: 0.9}`.
    """

    server_lr: float = 0.3
    beta: float = 0.9
    nesterov: bool = False

    def expand(self) -> Averaging:
        """Return averaging with a momentum step."""
        return Averaging(step=MomentumStep(self.server_lr, self.beta, self.nesterov))


@dataclass(frozen=True)
class _AdaptiveServer(Alias):
    """FedAvg with an adaptive server optimizer (Reddi et al., 2021).

    Args:
        server_lr: Server learning rate, at least 0.
        beta1: Decay of the first moment, in [0, 1).
        beta2: Decay of the second moment, in [0, 1).
        tau: Added to the root of the second moment, above 0; the larger, the less adaptive.
        v0: Initial second moment, at least 0; null is tau squared.
        bias_correction: Divide m by 1 - beta1^t and v by 1 - beta2^t, as Adam does.
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
    """FedAvg with Adam as the server optimizer.

    Example: `method: {name: fedadam, server_lr: 0.01}`.
    """

    optimizer: ClassVar[type[AdaptiveStep]] = AdamStep


@alias("fedyogi")
@dataclass(frozen=True)
class FedYogi(_AdaptiveServer):
    """FedAvg with Yogi as the server optimizer.

    Example: `method: {name: fedyogi, server_lr: 0.01}`.
    """

    optimizer: ClassVar[type[AdaptiveStep]] = YogiStep


@alias("fedadagrad")
@dataclass(frozen=True)
class FedAdagrad(_AdaptiveServer):
    """FedAvg with Adagrad as the server optimizer.

    Example: `method: {name: fedadagrad, server_lr: 0.01}`.
    """

    beta1: float = 0.0

    optimizer: ClassVar[type[AdaptiveStep]] = AdagradStep


@alias("fedexp")
@dataclass(frozen=True)
class FedExp(Alias):
    """FedExP: FedAvg whose server step grows with the diversity of the updates, without a server learning rate.

    Args:
        eps: Added to the squared norm of the mean update, above 0; larger values give smaller steps.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

    Example: `method: {name: fedexp, eps: 0.01}`.
    """

    eps: float = 1e-3
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> Averaging:
        """Return averaging with an extrapolation step."""
        return Averaging(aggregate=Mean(self.weighting), step=ExtrapolationStep(self.eps))


# FedAvg through a link or a codec of its own


@alias("fedpaq")
@dataclass(frozen=True)
class FedPaq(Alias):
    """FedPAQ: FedAvg with updates rounded at random to a few levels per bucket; unbiased, without memory.

    Args:
        bits: Bits per coordinate with the sign, from 2 to 8.
        bucket: Coordinates that share one scale, at least 1.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

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
        """Return FedAvg's averaging."""
        return _averaging(self.server_lr, self.weighting)


@alias("fed_ef")
@dataclass(frozen=True)
class FedEf(Alias):
    """Fed-EF: FedAvg on compressed updates with error feedback; dropped parts are added to the next update.

    Args:
        codec: Codec of the update; any codec that contracts.
        decay: Factor on the residual at each participation, in (0, 1].
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

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
        """Return FedAvg's averaging; the link does the rest."""
        return _averaging(self.server_lr, self.weighting)


@alias("stc_up")
@dataclass(frozen=True)
class StcUp(Alias):
    """STC on the uplink: FedAvg with sparse ternary updates and error feedback. The model is sent dense.

    Args:
        ratio: Share of the coordinates that is sent, in (0, 1].
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

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
        """Return FedAvg's averaging."""
        return _averaging(self.server_lr, self.weighting)


@alias("stc_updown")
@dataclass(frozen=True)
class StcUpDown(Alias):
    """STC in both directions: sparse ternary updates and sparse ternary server steps, both with error feedback.

    Args:
        ratio: Share of the coordinates that a client sends, in (0, 1].
        server_ratio: Share of the coordinates that the server changes in a round, in (0, 1].
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

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
        """Coordinates changed since the client's last round, bit-exact: a rounded copy would soon differ everywhere."""
        return {"model": Delta(Nonzero(), arithmetic="bits")}

    def expand(self) -> Averaging:
        """Return averaging with a ternary server step."""
        return Averaging(aggregate=Mean(self.weighting), step=TernaryStep(self.server_ratio, self.server_lr))


@alias("lbgm")
@dataclass(frozen=True)
class Lbgm(Alias):
    """LBGM: FedAvg in which a tensor whose update has kept its direction is sent as one number.

    Args:
        threshold: Largest squared sine of the angle between two directions at which one number is sent for a tensor.
        granularity: Decide for each `tensor`, or once for the whole `model`.
        codec: Codec of the tensors that are sent.
        residual: Add the part that was not sent to the next update; `separate` keeps the errors of codec and
            projection apart, and adds the latter after the codec, as in the authors' algorithm.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.

    Example: `method: {name: lbgm, threshold: 0.2}`.
    """

    threshold: float = 0.2
    granularity: Literal["tensor", "model"] = "tensor"
    codec: Codec = part(codecs, "dense")
    residual: bool | Literal["separate"] = False
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The LBGM link."""
        return {"update": LbgmLink(self.threshold, self.granularity, self.codec, self.residual)}

    def expand(self) -> Averaging:
        """Return FedAvg's averaging."""
        return _averaging(self.server_lr)


# estimates of the clients' updates, kept at both ends by a link


@alias("ef21")
@dataclass(frozen=True)
class Ef21(Alias):
    """EF21: the average of estimates of the clients' updates, which compressed differences keep up to date.

    Args:
        agg: `all` averages the estimates of all clients, as published; `participants` only those of the cohort, which
            does not converge at partial participation.
        codec: Codec of the difference; it must contract (`top_k`, `ternary`, ...).
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.

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
        """Return FedAvg's averaging, or MIFA for `agg: all`."""
        return _estimates(self.agg, self.server_lr)


@alias("ef21_sgdm")
@dataclass(frozen=True)
class Ef21Sgdm(Alias):
    """EF21-SGDM: EF21 whose clients compress a moving average of their updates, which reduces gradient noise.

    Args:
        eta: Share of the new update in the average, in (0, 1]; 1 is EF21.
        agg: `all` averages the estimates of all clients, as published; `participants` only those of the cohort, which
            does not converge at partial participation.
        codec: Codec of the difference; it must contract (`top_k`, `ternary`, ...).
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.

    Example: `method: {name: ef21_sgdm, eta: 0.1, codec: {name: top_k, ratio: 0.1}}`.
    """

    eta: float = 0.1
    agg: Estimates = "all"
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Momentum, followed by the link that keeps the estimates."""
        return {"update": Momentum(Ef21Link(self.codec), self.eta)}

    def expand(self) -> MethodConfig:
        """Return FedAvg's averaging, or MIFA for `agg: all`."""
        return _estimates(self.agg, self.server_lr)


@alias("econtrol")
@dataclass(frozen=True)
class EControl(Alias):
    """EControl: EF21 whose clients also send a share of the accumulated error of their estimates.

    Args:
        eta: Share of the accumulated error in every message, in [0, 1]; 0 is EF21.
        agg: `all` averages the estimates of all clients, as published; `participants` only those of the cohort, which
            does not converge at partial participation.
        codec: Codec of the difference; it must contract (`top_k`, `ternary`, ...).
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.

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
        """Return FedAvg's averaging, or MIFA for `agg: all`."""
        return _estimates(self.agg, self.server_lr)


@alias("clag")
@dataclass(frozen=True)
class Clag(Alias):
    """CLAG: the average of estimates that clients correct only if the error exceeds zeta times the update's change.

    Args:
        zeta: Tolerance of an estimate's error, relative to the change of the update; at least 0.
        codec: Codec of the difference; it must contract (`top_k`, `ternary`, ...).
        max_lag: Number of participations of which at least one sends a message, at least 1; null: no limit.
        agg: `all` averages the estimates of all clients, as published; `participants` only those of the cohort, which
            does not converge at partial participation.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.

    Example: `method: {name: clag, zeta: 4}`.
    """

    zeta: float = 1.0
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    max_lag: int | None = 10
    agg: Estimates = "all"
    server_lr: float = 1.0

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that keeps the estimates and decides when to send."""
        return {"update": ClagLink(self.zeta, self.codec, self.max_lag)}

    def expand(self) -> MethodConfig:
        """Return FedAvg's averaging, or MIFA for `agg: all`."""
        return _estimates(self.agg, self.server_lr)


@alias("laq")
@dataclass(frozen=True)
class Laq(Alias):
    """LAQ: the average of estimates that clients correct by quantised innovations, skipped while they are small.

    The paper steps by a sum, theta <- theta - a sum_m Q_m, and compares gradients with moves / (a M)^2. In updates,
    delta_m = -(a M / server_lr) g_m, that is moves / server_lr^2.

    Args:
        bits: Bits per coordinate, from 1 to 32.
        depth: Number of the model's last moves that count, at least 0.
        xi: Total weight of these moves, at least 0.
        max_lag: Number of participations of which at least one sends a message, at least 1; null: no limit.
        agg: `all` averages the estimates of all clients, as published; `participants` only those of the cohort, which
            does not converge at partial participation.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.

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
        """The link that quantises and skips."""
        return {"update": LaqLink(self.bits, self.max_lag)}

    def expand(self) -> Movement:
        """Return FedAvg's averaging, or MIFA for `agg: all`, with the model's movement in every request."""
        xi = self.xi / self.server_lr**2 if self.server_lr else 0.0  # the model never moves with server_lr 0
        return Movement(_estimates(self.agg, self.server_lr), self.depth, xi)


# server memory


@alias("fedvarp")
@dataclass(frozen=True)
class FedVarp(Alias):
    """FedVARP: fresh updates corrected by the last updates of absent clients, as SAGA does with gradients.

    Args:
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

    Example: `method: fedvarp`.
    """

    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    def expand(self) -> FedStale:
        """Return FedStale with beta 1."""
        return FedStale(1.0, self.server_lr, self.weighting)
