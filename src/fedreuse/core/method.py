"""A method: two halves, server and client, that share nothing but messages, and the links between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from fedreuse.core.errors import ConfigError
from fedreuse.core.message import EMPTY, ClientId, Conversation, Message
from fedreuse.core.needs import Needs
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.model import Model
    from fedreuse.core.population import Population
    from fedreuse.core.schema import ModelSchema, Schema
    from fedreuse.core.tensors import Tensors

__all__ = [
    "BufferPolicy",
    "ClientHalf",
    "Link",
    "LinkContext",
    "Method",
    "MethodConfig",
    "Resolved",
    "Scope",
    "ServerHalf",
    "methods",
]

S = TypeVar("S")
C = TypeVar("C")
BufferPolicy = Literal["dense", "as_weights"]


class ServerHalf(ABC, Generic[S]):
    """Base class of server halves: a round is a conversation with clients.

    A server half defines `init`, `round` and `model`; the other members have defaults.

    Example:
        >>> from fedreuse import Cohort, Event, Events, Message, ServerHalf
        >>> class Counting(ServerHalf):
        ...     def init(self, model, population):
        ...         return 0
        ...
        ...     def round(self, state, cohort):
        ...         replies = yield {client: Message("count") for client in cohort.clients}
        ...         total = state + sum(reply.values["count"] for reply in replies.values())
        ...         return total, Events(tuple(Event(client, "fresh") for client in replies))
        ...
        ...     def model(self, state):
        ...         raise NotImplementedError("nothing is trained")
        >>> conversation = Counting().round(0, Cohort(1, (2, 5), seed=101))
        >>> requests = next(conversation)
        >>> try:
        ...     conversation.send({client: Message("count", values={"count": client}) for client in requests})
        ... except StopIteration as finished:
        ...     print(finished.value[0])
        7
    """

    @abstractmethod
    def init(self, model: Model, population: Population) -> S:
        """The state before the first round."""

    @abstractmethod
    def round(self, state: S, cohort: Cohort) -> Conversation[S]:
        """Yield requests, receive replies, return the new state and one event per selected client."""

    @abstractmethod
    def model(self, state: S) -> Model:
        """What is evaluated and deployed."""

    def broadcast(self, state: S) -> Model:
        """What clients receive: the evaluated model, unless the half evaluates another one, such as an average."""
        return self.model(state)

    def forget(self, state: S, client: ClientId) -> S:
        """A client lost its memory: the state without what is remembered of it; as it is, unless the half says more."""
        del client
        return state


class ClientHalf(ABC, Generic[C]):
    """Base class of client halves: answers to one request at a time.

    A client half defines `init` and `answer`; the other members have defaults.

    Example:
        >>> from fedreuse import ClientHalf, Message
        >>> class Counter(ClientHalf):
        ...     def init(self):
        ...         return 0
        ...
        ...     def answer(self, request, state, trainer):
        ...         return Message("count", values={"count": state + 1}), state + 1
        >>> reply, state = Counter().answer(Message("count"), 4, trainer=None)
        >>> reply.values["count"], state
        (5, 5)
    """

    @property
    def wants_delivered(self) -> bool:
        """Whether `settle` must see what the server will decode (it costs a decoding); no, unless the half says so."""
        return False

    @abstractmethod
    def init(self) -> C:
        """The state before the first contact."""

    @abstractmethod
    def answer(self, request: Message, state: C, trainer: LocalTrainer) -> tuple[Message, C]:
        """Reply to a request; the new state counts only if the server absorbs the reply."""

    def settle(self, state: C, delivered: Message) -> C:
        """After packing: the state, given what the server will decode (empty unless `wants_delivered` is true)."""
        del delivered
        return state

    def own_model(self, state: C, received: Model, trainer: LocalTrainer) -> Model:
        """The model that the client uses for itself: the received one, unless the half keeps another."""
        del state, trainer
        return received


@dataclass(frozen=True, eq=False)
class LinkContext:
    """What a link may know of a crossing.

    Args:
        schema: What the group is made of.
        round_number: The round, from 1.
        client: Whose message it is.
        rng: The stream of this link, client and round.
        values: The small values of the request.
        reference: On the way up, what the request brought or left with the client (the model for an update, buffers for
            buffers), as both ends know it; None unless the link says that it `uses_reference`.
        initial: On the way down, the group before the first round, where both ends make it themselves; None elsewhere.
        shared: On the way down, at the server, what `Link.share` gave; None elsewhere.

    Example:
        >>> import numpy as np
        >>> from fedreuse import LinkContext, Schema, TensorSpec
        >>> context = LinkContext(Schema((TensorSpec("w", (4,)),)), 1, 0, np.random.default_rng(0))
        >>> context.schema.size, context.reference is None
        (4, True)
    """

    schema: Schema
    round_number: int
    client: ClientId
    rng: np.random.Generator
    values: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    reference: Tensors | None = None
    initial: Tensors | None = None
    shared: Any = None


class Link(ABC):
    """Base class of links: one group of tensors in one direction, with a state at each end (None before the first use).

    A link defines `has_memory`, `send`, `receive` and `delivered`; the other members have defaults.

    A link with memory never carries buffers: a residual or reference on running variances turns them negative. A link
    without memory sends the same tensors to many clients as one parcel. A link derives from this class.

    Example:
        >>> import numpy as np
        >>> from fedreuse import LinkContext, Schema, Tensors, TensorSpec, registries
        >>> codec = {"name": "top_k", "ratio": 0.5}
        >>> link = registries["links"].parse({"name": "error_feedback", "codec": codec}, "link")
        >>> schema = Schema((TensorSpec("w", (4,)),))
        >>> context = LinkContext(schema, 1, 0, np.random.default_rng(0))
        >>> parcel, residual = link.send(Tensors(schema, np.float32([4, 1, 3, 2])), None, context)
        >>> link.receive(parcel, None, context)[0]["w"].tolist()
        [4.0, 0.0, 3.0, 0.0]
    """

    @property
    @abstractmethod
    def has_memory(self) -> bool:
        """Whether an end remembers something from one parcel to the next."""

    @property
    def uses_reference(self) -> bool:
        """Whether the context needs a `reference` on the way up; no, unless the link says so."""
        return False

    @property
    def drops_coordinates(self) -> bool:
        """Whether coordinates arrive as zero that were not; no, unless the link says so."""
        return False

    @property
    def sends_shared(self) -> bool:
        """Whether receivers are sent what is shared, whatever `send` is given; no, unless the link says so."""
        return False

    def share(self, tensors: Tensors, shared: Any, context: LinkContext) -> Any:
        """On the way down, before tensors are sent to anybody: what the server keeps for all receivers together.

        `shared` is what it kept before, None at first. Nothing is shared, unless the link says so.
        """
        del tensors, shared, context

    @abstractmethod
    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Pack; a parcel of None is silence."""

    @abstractmethod
    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        """Unpack what the other end sent; `NotHeld` if that builds on something else than this end holds."""

    @abstractmethod
    def delivered(self, parcel: Parcel | None, state: Any, context: LinkContext) -> Tensors:
        """What the receiver will make of the parcel, told from the sender's new state."""


@dataclass(frozen=True, eq=False)
class Method:
    """Two halves and their links; a group without a link travels dense.

    `max_norm` bounds each group of a reply but buffers, as the server decodes it; a larger one is refused. `initial` is
    the model before the first round, where this end makes it from the configuration as the other end does.
    """

    server: ServerHalf[Any]
    client: ClientHalf[Any]
    uplink: Mapping[str, Link] = field(default_factory=dict)
    downlink: Mapping[str, Link] = field(default_factory=dict)
    max_norm: float | None = None
    initial: Model | None = None

    def __post_init__(self) -> None:
        """Refuse halves that lack the abilities which their base classes declare."""
        for half, base in ((self.server, ServerHalf), (self.client, ClientHalf)):
            if base not in type(half).__mro__:
                raise ConfigError(
                    f"{type(half).__name__} is no {base.__name__}; write class {type(half).__name__}"
                    f"({base.__name__}[...]) with {base.__name__} from {base.__module__}"
                )


@dataclass(frozen=True)
class Scope:
    """What a method may adapt to before a run: the model's tensors, how many clients, and how often they are asked.

    Args:
        schema: What models are made of.
        clients: How many clients there are.
        cohort: How many of them a round asks.
        rounds: How many rounds there are.
        shares_initial: Whether both ends make the initial model themselves.

    Example:
        >>> from fedreuse.core.method import Scope
        >>> from fedreuse.testing.quadratic import quadratic_schema
        >>> Scope(quadratic_schema(), clients=50, cohort=10, rounds=60).num_requests
        600
    """

    schema: ModelSchema
    clients: int
    cohort: int
    rounds: int
    shares_initial: bool = True

    @property
    def num_requests(self) -> int:
        """Requests of all rounds, one per selected client."""
        return self.rounds * self.cohort


@dataclass(frozen=True)
class Resolved:
    """What a method becomes in one federation: an ordinary method and its links."""

    method: MethodConfig
    uplink: Mapping[str, Link]
    downlink: Mapping[str, Link]


class MethodConfig(ABC):
    """Base class of methods: a frozen dataclass of settings that makes the two halves.

    Its fields are the method's settings. A method that is defined by its links (a recipe) names them in
    `default_uplink` and `default_downlink`.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse import MethodConfig, registries
        >>> @dataclass(frozen=True)
        ... class Mine(MethodConfig):
        ...     mu: float = 0.01
        ...
        ...     def halves(self, buffers):
        ...         return registries["methods"].parse({"name": "fedprox", "mu": self.mu}, "method").halves(buffers)
        >>> server, client = Mine().halves("dense")
        >>> Mine().uplink_groups, Mine().needs.full_participation
        (('update',), False)
    """

    aggregate: Any = None
    """The aggregator of a round, where the method has such a field; None is its own."""

    @property
    def needs(self) -> Needs:
        """What the method assumes of a run; nothing, unless it says so."""
        return Needs()

    @property
    def is_personal(self) -> bool:
        """Whether clients end with models of their own, so that a run also measures those."""
        return False

    @property
    def uplink_groups(self) -> tuple[str, ...]:
        """Groups that may have a link on the way up, besides `buffers` and `counters`, which may in every method."""
        return ("update",)

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """Groups that may have a link on the way down, besides `buffers` and `counters`."""
        return ("model",)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Links that belong to the method, by group."""
        return EMPTY

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """Links that belong to the method, by group."""
        return EMPTY

    def expand(self) -> MethodConfig:
        """The conversation with its parts that a name of the literature stands for; other methods are their own."""
        return self

    def resolve(self, scope: Scope) -> Resolved | None:
        """The method and links that this one stands for in a federation; None unless it depends on the federation."""
        del scope
        return None

    def with_codec(self, codec: Any) -> MethodConfig | None:
        """The same method with another codec in its own link of `update`; None if its codec is not free to choose.

        It is free if the method has a field `codec`.
        """
        is_free = is_dataclass(self) and any(one.name == "codec" for one in fields(self))
        return replace(self, codec=codec) if is_free else None  # type: ignore[type-var]  # it has such a field

    @abstractmethod
    def halves(self, buffers: BufferPolicy) -> tuple[ServerHalf[Any], ClientHalf[Any]]:
        """Return the server half and the client half under a buffer policy."""


methods: Registry[MethodConfig] = Registry("methods", "fedreuse.methods", base=MethodConfig)
