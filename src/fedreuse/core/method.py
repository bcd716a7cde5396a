"""Methods: a server half and a client half that communicate only by messages, and the links between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from fedreuse.core.cohort import Attendance
from fedreuse.core.errors import ConfigError
from fedreuse.core.message import EMPTY, ClientId, Conversation, Message
from fedreuse.core.needs import Needs
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Value
    from fedreuse.core.model import Model
    from fedreuse.core.population import Population
    from fedreuse.core.schema import ModelSchema, Schema
    from fedreuse.core.tensors import Tensors

__all__ = [
    "BufferPolicy",
    "ClientHalf",
    "Evaluations",
    "Line",
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
    """Base class of server halves: a round is a generator that yields requests and receives replies.

    Subclasses define `init`, `round` and `model`; the other members have defaults.

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
        """Return the state before the first round."""

    @abstractmethod
    def round(self, state: S, cohort: Cohort) -> Conversation[S]:
        """Run a round: yield requests by client, receive replies, return the new state and the round's events.

        Args:
            state: The state before the round.
            cohort: The selected clients and the round's random streams.
        """

    @abstractmethod
    def model(self, state: S) -> Model:
        """Return the model that is evaluated and deployed."""

    def broadcast(self, state: S) -> Model:
        """Return the model that clients receive; by default the evaluated one, which may be an average instead."""
        return self.model(state)

    @property
    def is_asynchronous(self) -> bool:
        """True if `round` is sent one reply at a time, in the order of arrival; False by default.

        Such a round may yield requests at any time, also none, and may end while requests are under way; their clients
        are the `busy` ones of the next cohort. Each `yield` returns the next arrival: a mapping with one client, or an
        empty one if nothing is under way. A lost reply arrives as a message of kind `LOST`. No client has two requests
        under way.
        """
        return False

    def forget(self, state: S, client: ClientId) -> S:
        """Return the state after a client lost its own state; by default unchanged."""
        del client
        return state


class ClientHalf(ABC, Generic[C]):
    """Base class of client halves, which answer one request at a time.

    Subclasses define `init` and `answer`; the other members have defaults.

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
    def has_state(self) -> bool:
        """True if clients remember something between requests; False: the state is always that of `init`."""
        return True

    @property
    def wants_delivered(self) -> bool:
        """True if `settle` needs the message as the server decodes it, which costs a decoding; False by default."""
        return False

    @abstractmethod
    def init(self) -> C:
        """Return the state before the first request."""

    @abstractmethod
    def answer(self, request: Message, state: C, trainer: LocalTrainer) -> tuple[Message, C]:
        """Answer a request.

        Args:
            request: The server's request.
            state: The client's state.
            trainer: Local training and evaluation.

        Returns:
            The reply and the new state, which takes effect only if the server accepts the reply.
        """

    def settle(self, state: C, delivered: Message) -> C:
        """Return the state after encoding; `delivered` is the decoded reply, empty unless `wants_delivered`."""
        del delivered
        return state

    def own_model(self, state: C, received: Model, trainer: LocalTrainer) -> Model:
        """Return the client's personal model; by default the received one."""
        del state, trainer
        return received


@dataclass(frozen=True, eq=False)
class LinkContext:
    """The context of one transfer over a link.

    Args:
        schema: Schema of the group.
        round_number: The round, from 1.
        client: Id of the client.
        rng: Random stream of this link, client and round.
        values: Small values of the request.
        reference: On the uplink, the tensors that the request sent down or that the client held (the model for an
            update, buffers for buffers), known at both ends. None unless the link `uses_reference`.
        initial: On the downlink, the group before the first round, if both ends create it themselves; else None.
        shared: On the downlink at the server, the result of `Link.share`; else None.

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
    """Base class of links: the transfer of one group in one direction, with a state at sender and receiver.

    Subclasses define `has_memory`, `send`, `receive` and `delivered`; the other members have defaults. States are None
    before the first use.

    A link with memory cannot send buffers: a residual or reference of running variances turns them negative. A link
    without memory encodes the same tensors for many clients once.

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
        """True if sender or receiver has a state."""

    @property
    def uses_reference(self) -> bool:
        """True if the link needs `reference` of the context on the uplink; False by default."""
        return False

    @property
    def drops_coordinates(self) -> bool:
        """True if coordinates that are not sent are delivered as zero; False by default."""
        return False

    @property
    def sends_shared(self) -> bool:
        """True if all receivers are sent the shared state, and `send` ignores its tensors; False by default."""
        return False

    def share(self, tensors: Tensors, shared: Any, context: LinkContext) -> Any:
        """Return the state that the server keeps for all receivers together; called once before `send` on a downlink.

        Args:
            tensors: The tensors to send.
            shared: The previous shared state; None at first.
            context: The context of the transfer.

        Returns:
            The new shared state, which `send` gets as `context.shared`; None by default.
        """
        del tensors, shared, context

    @abstractmethod
    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Encode tensors.

        Args:
            tensors: The tensors to send, which may be a part of the schema.
            state: The sender's state; None at first.
            context: The context of the transfer.

        Returns:
            The parcel (None: nothing is sent) and the sender's new state.
        """

    @abstractmethod
    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        """Decode a parcel.

        Args:
            parcel: The sender's parcel; None if nothing was sent.
            state: The receiver's state; None at first.
            context: The context of the transfer.

        Returns:
            The delivered tensors and the receiver's new state.

        Raises:
            WireError: If the parcel is invalid.
            NotHeld: If it is a difference to tensors that the receiver does not hold.
        """

    @abstractmethod
    def delivered(self, parcel: Parcel | None, state: Any, context: LinkContext) -> Tensors:
        """Return the tensors that `receive` will deliver, computed from the sender's new state."""

    def held(self, state: Any, context: LinkContext) -> Tensors | None:
        """Return the tensors that the receiver holds; None (the default) if the sender does not keep them.

        Args:
            state: The sender's state, or the shared state of a link that `sends_shared`.
            context: The context of the transfer.
        """
        del state, context
        return None


@dataclass(frozen=True, eq=False)
class Method:
    """Two halves and their links.

    Args:
        server: The server half.
        client: The client half.
        uplink: Links by group, client to server; groups without a link are sent dense.
        downlink: Links by group, server to client.
        max_norm: Largest Euclidean norm of each decoded group of a reply except buffers; replies above it are refused.
            None: no bound.
        initial: The model before the first round, if both ends create it from the configuration; else None.

    Raises:
        ConfigError: If a half does not derive from its base class.
    """

    server: ServerHalf[Any]
    client: ClientHalf[Any]
    uplink: Mapping[str, Link] = field(default_factory=dict)
    downlink: Mapping[str, Link] = field(default_factory=dict)
    max_norm: float | None = None
    initial: Model | None = None

    def __post_init__(self) -> None:
        """Check that the halves derive from their base classes."""
        for half, base in ((self.server, ServerHalf), (self.client, ClientHalf)):
            if base not in type(half).__mro__:
                raise ConfigError(
                    f"{type(half).__name__} is no {base.__name__}; write class {type(half).__name__}"
                    f"({base.__name__}[...]) with {base.__name__} from {base.__module__}"
                )

    @cached_property
    def has_memory(self) -> bool:
        """True if an exchange leaves something at the client: a state of its half, or of a link."""
        return self.client.has_state or any(
            link.has_memory for link in (*self.uplink.values(), *self.downlink.values())
        )


class Line(NamedTuple):
    """A client's line, and how often the schedule selects the client.

    Attributes:
        up: Bits per second to the server.
        down: Bits per second from the server.
        visits: Number of rounds in which the client is selected; None if the schedule does not decide it.
        is_first: Whether the client is selected in round 1.
    """

    up: float
    down: float
    visits: int | None
    is_first: bool


@dataclass(frozen=True)
class Evaluations:
    """Evaluations of the model by all clients in the course of a run.

    Args:
        times: How often each client is sent the model for evaluation, the test at the end included.
        answer: Values of a reply that is as long as it can be.
    """

    times: int
    answer: Mapping[str, Value]


@dataclass(frozen=True)
class Scope:
    """Facts about a federation that a method may adapt to before a run.

    Args:
        schema: Schema of the model.
        clients: Number of clients.
        cohort: Number of clients selected in each round.
        rounds: Number of rounds.
        shares_initial: True if both ends create the initial model themselves.
        buffer: Replies per round of an asynchronous method; None: one from every client of the cohort.
        lines: Bandwidths and visits of every client, for methods that need `lines`; empty: unknown.
        evaluations: Evaluations by clients; None if the server has the examples.

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
    buffer: int | None = None
    lines: tuple[Line, ...] = ()
    evaluations: Evaluations | None = None

    @property
    def num_requests(self) -> int:
        """Number of requests of all rounds: one per selected client, or those of an asynchronous run without losses."""
        if self.buffer is None:
            return self.rounds * self.cohort
        # a request for every reply but the last of each round, and those still under way at the end
        return self.rounds * self.buffer + self.cohort - 1


@dataclass(frozen=True)
class Resolved:
    """The method and links that a method chooses for one federation.

    `sizes` are the largest request and reply of each client in bytes, where they differ; else empty. `because` says in
    words what was chosen for this federation and why; it is shown by dry runs.
    """

    method: MethodConfig
    uplink: Mapping[str, Link]
    downlink: Mapping[str, Link]
    sizes: tuple[tuple[int, int], ...] = ()
    because: str = field(default="", compare=False)


class MethodConfig(ABC):
    """Base class of methods: a frozen dataclass of settings that creates the two halves.

    Subclasses define `halves`; the other members have defaults. A method that is defined by its links returns them from
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
    """The aggregator of a round, if the method has such a field; None: the method's own."""

    @property
    def needs(self) -> Needs:
        """The method's requirements on a run; none by default."""
        return Needs()

    @property
    def is_personal(self) -> bool:
        """True if clients have personal models, which are then evaluated, too; False by default."""
        return False

    @property
    def uplink_groups(self) -> tuple[str, ...]:
        """Groups that may have an uplink, in addition to `buffers` and `counters`."""
        return ("update",)

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """Groups that may have a downlink, in addition to `buffers` and `counters`."""
        return ("model",)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The method's own uplinks, by group."""
        return EMPTY

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """The method's own downlinks, by group."""
        return EMPTY

    def expand(self) -> MethodConfig:
        """Return the method that an alias stands for, with its parts; other methods return themselves."""
        return self

    def resolve(self, scope: Scope) -> Resolved | None:
        """Return the method and links chosen for a federation; None (the default) if they do not depend on it."""
        del scope
        return None

    def attendance(self, cohorts: Sequence[Cohort], *, is_busy: bool) -> Attendance:
        """Return which clients train in a run without faults; by default all that are selected.

        Args:
            cohorts: The cohorts of all rounds.
            is_busy: For a method whose clients train depending on a score: True for scores that make as many clients
                train as possible, False for as few as possible.
        """
        del is_busy
        trained = tuple(frozenset(cohort.clients) for cohort in cohorts)
        return Attendance(trained, len(frozenset().union(*trained)))

    def check(self, scope: Scope) -> None:
        """Raise a `ConfigError` if the settings do not fit a federation; nothing is checked by default."""
        del scope

    def with_codec(self, codec: Any) -> MethodConfig | None:
        """Return the method with another codec in its own link of `update`, or None if it has no field `codec`."""
        has_codec = is_dataclass(self) and any(item.name == "codec" for item in fields(self))
        return replace(self, codec=codec) if has_codec else None  # type: ignore[type-var]  # it has such a field

    @abstractmethod
    def halves(self, buffers: BufferPolicy) -> tuple[ServerHalf[Any], ClientHalf[Any]]:
        """Return the server half and the client half for a buffer policy."""


methods: Registry[MethodConfig] = Registry("methods", "fedreuse.methods", base=MethodConfig)
