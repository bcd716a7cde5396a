"""FedPM (Isik et al., 2023): clients train the probabilities of masks over frozen weights, and send one drawn mask.

theta    = sigmoid(s)                              s: scores, the weights of the network `masked`
s_i      = local training from s
m_i      = 1 where u_i < sigmoid(s_i), else 0      u_i: uniform, drawn from `basis` at both ends; m_i is sent
ones     = keep ones + sum_R m_i
count    = keep count + |R|
s        = logit of ones / count, limited to [limit, 1 - limit], rounded to eighths, which code in two bytes or less

send: flips (as in DeltaMask, Tsouvalas et al., 2024) sends where m_i differs from 1[u_i < theta], which is rare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import require
from fedreuse.core.message import Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, ServerHalf, methods
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors, to_dense, zeros
from fedreuse.core.values import value
from fedreuse.methods.averaging import update_of
from fedreuse.methods.directions import check_basis
from fedreuse.methods.replay import moved_buffers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation
    from fedreuse.core.method import BufferPolicy, Link
    from fedreuse.core.population import Population

__all__ = ["FedPm", "FedPmClient", "FedPmServer", "FedPmState"]


@methods.register(
    "fedpm", refuses={"aggregate": "it counts masks", "step": "it counts masks", "codec": "masks are coded losslessly"}
)
@dataclass(frozen=True)
class FedPm(MethodConfig):
    """FedPM: one bit per weight up at most, for the network `masked`.

    Args:
        keep: Share of the counts of former rounds that is kept, in [0, 1); 0 is the mean of this round's masks.
        limit: Probabilities stay in [limit, 1 - limit], in (0, 0.5).
        send: `mask`: the drawn mask; `flips`: where it differs from the mask of the received probabilities under the
            same draws, which needs a lossless downlink.
        basis: Seed of the draws, the same at both ends.

    Raises:
        ConfigError: If a value is out of range.

    Example: `method: {name: fedpm, send: flips}` with `network: {name: masked, of: cnn}`.
    """

    keep: float = 0.0
    limit: float = 0.02
    send: Literal["mask", "flips"] = "mask"
    basis: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 <= self.keep < 1, "method.keep must be in [0, 1)", self.keep)
        require(0 < self.limit < 0.5, "method.limit must be in (0, 0.5)", self.limit)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Positions of ones, losslessly coded."""
        return {"update": Plain(Packed(Nonzero()))}

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """Scores, losslessly coded: few levels with a small cohort."""
        return {"model": Plain(Packed(Dense()))}

    def halves(self, buffers: BufferPolicy) -> tuple[FedPmServer, FedPmClient]:
        """Return both halves; buffers are averaged over the clients."""
        del buffers
        return FedPmServer(self), FedPmClient(self)

    def drawn(self, scores: np.ndarray, round_number: int, client: int) -> np.ndarray:
        """Return the mask of scores under the draws of a client and round, as 0.0 and 1.0."""
        draws = stream(self.basis, "mask", round_number, client).random(len(scores))
        with np.errstate(over="ignore"):
            return (draws < 1 / (1 + np.exp(-scores.astype(np.float64)))).astype(scores.dtype)


@value
class FedPmState:
    """The model, whose weights are scores; counts of ones, and of masks."""

    model: Model
    ones: Tensors
    count: float = 0.0


@dataclass(frozen=True)
class FedPmServer(ServerHalf[FedPmState]):
    """The server half: counts ones."""

    config: FedPm

    def init(self, model: Model, population: Population) -> FedPmState:
        """Return the state before the first round."""
        del population
        return FedPmState(model, zeros(model.weights.schema))

    def model(self, state: FedPmState) -> Model:
        """Return the model of scores."""
        return state.model

    def round(self, state: FedPmState, cohort: Cohort) -> Conversation[FedPmState]:
        """Ask the cohort for masks, and set the scores by their counts."""
        config, before = self.config, state.model
        values = {"basis": config.basis, "draw": cohort.round_number}
        request = Message("train", to_groups(before, "model"), values, answers=(update_of(before),))
        replies = yield dict.fromkeys(cohort.clients, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)
        ones, count = config.keep * state.ones.values, config.keep * state.count + len(replies)
        for client in sorted(replies):
            sent = np.clip(to_dense(replies[client].groups["update"]).values, 0, 1)
            if config.send == "flips":
                sent = np.abs(config.drawn(before.weights.values, cohort.round_number, client) - sent)
            ones = ones + sent
        chance = np.clip(ones / ones.dtype.type(count), config.limit, 1 - config.limit)
        scores = (np.rint(8 * np.log(chance / (1 - chance))) / 8).astype(before.weights.values.dtype)
        moved, num_kept = moved_buffers(before, replies, cohort)
        schema = before.weights.schema
        model = Model(Tensors(schema, scores), moved.buffers, moved.counters)
        after = FedPmState(model, Tensors(schema, ones.astype(scores.dtype)), count)
        return after, Events(events, {"kept variances": num_kept})


@dataclass(frozen=True)
class FedPmClient(ClientHalf[None]):
    """The client half: trains scores and sends a drawn mask, keeps no state."""

    has_state: ClassVar[bool] = False

    config: FedPm

    def init(self) -> None:
        """Return None: the client keeps no state."""

    def answer(self, request: Message, state: None, trainer: LocalTrainer) -> tuple[Message, None]:
        """Train and reply with a mask."""
        check_basis(request.values["basis"], self.config.basis)
        received = from_groups(request.groups, "model", trainer.schema)
        trained = trainer.train(received).model
        where = int(request.values["draw"]), trainer.client  # type: ignore[arg-type]  # the server half wrote it
        scores = trained.weights.values
        mask = self.config.drawn(scores, *where)
        if self.config.send == "flips":
            mask = np.abs(mask - self.config.drawn(received.weights.values, *where))
        mask = np.where(np.isfinite(scores), mask, np.nan).astype(scores.dtype)  # a diverged training is refused
        groups = to_groups(difference(trained, received), "update")
        return Message("update", {**groups, "update": Tensors(trained.weights.schema, mask)}), state

    def settle(self, state: None, delivered: Message) -> None:
        """Return None: the client keeps no state."""
