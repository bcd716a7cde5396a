"""Guards around halves, links and trainers: they change no result, and raise if a contract is violated."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.links.around import AroundLink
from fedreuse.compression.links.plain import Plain
from fedreuse.core.method import ClientHalf, Link, LinkContext, Method, ServerHalf
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.core.values import arrays_of

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.corrections import Correction
    from fedreuse.core.local_trainer import BatchPlan, LocalTrainer, SplitName, Trained, Work
    from fedreuse.core.message import Conversation, Events, Message
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.needs import Needs
    from fedreuse.core.population import Population
    from fedreuse.core.schema import ModelSchema, Schema

__all__ = ["MirroredLink", "NothingElse", "digest", "guarded", "mirrored", "named", "unchanged"]


def digest(*trees: object) -> str:
    """Return a hash of all arrays in some values."""
    total = sha256()
    for tree in trees:
        for array in arrays_of(tree):
            total.update(f"{array.dtype.str}{array.shape}".encode())
            total.update(array.tobytes())
    return total.hexdigest()


@contextmanager
def unchanged(what: str, *trees: object) -> Iterator[None]:
    """Fail if an input is changed inside the context, or could be: its arrays must be read-only."""
    before = digest(*trees)
    for tree in trees:
        for array in arrays_of(tree):
            assert not array.flags.writeable, f"{what} was given a writable array"
    yield
    assert digest(*trees) == before, f"{what} changed its input"


def guarded(method: Method) -> Method:
    """Return the same method, which fails if a half or link changes its input."""
    uplink, downlink = (
        {group: _guarded_link(link) for group, link in side.items()} for side in (method.uplink, method.downlink)
    )
    return replace(
        method,
        server=_GuardedServer(method.server),
        client=_GuardedClient(method.client),
        uplink=uplink,
        downlink=downlink,
    )


@dataclass(frozen=True)
class _GuardedServer(ServerHalf[Any]):
    inner: ServerHalf[Any]

    @property
    def is_asynchronous(self) -> bool:
        return self.inner.is_asynchronous

    def init(self, model: Model, population: Population) -> Any:
        with unchanged("the server's init", model):
            return self.inner.init(model, population)

    def model(self, state: Any) -> Any:
        with unchanged("the server's model", state):
            return self.inner.model(state)

    def forget(self, state: Any, client: int) -> Any:
        with unchanged("the server's forget", state):
            return self.inner.forget(state, client)

    def round(self, state: Any, cohort: Cohort) -> Conversation[Any]:
        with unchanged("the server's round", state):
            conversation = self.inner.round(state, cohort)
            requests = next(conversation)
            while True:
                replies = yield requests
                with unchanged("the server's round", requests, replies):
                    try:
                        requests = conversation.send(replies)
                    except StopIteration as finished:
                        result: tuple[Any, Events] = finished.value
                        return result


def named(method: Method) -> Method:
    """Return the same method, which fails if a request does not name its answers."""
    return replace(method, server=_NamedServer(method.server))


@dataclass(frozen=True)
class _NamedServer(ServerHalf[Any]):
    inner: ServerHalf[Any]

    @property
    def is_asynchronous(self) -> bool:
        return self.inner.is_asynchronous

    def init(self, model: Model, population: Population) -> Any:
        return self.inner.init(model, population)

    def model(self, state: Any) -> Any:
        return self.inner.model(state)

    def forget(self, state: Any, client: int) -> Any:
        return self.inner.forget(state, client)

    def round(self, state: Any, cohort: Cohort) -> Conversation[Any]:
        conversation = self.inner.round(state, cohort)
        requests = next(conversation)
        while True:
            silent = sorted({request.kind for request in requests.values() if not request.answers})
            assert not silent, f"requests {silent} do not name their answers: Message(..., answers=(Answer(...),))"
            replies = yield requests
            try:
                requests = conversation.send(replies)
            except StopIteration as finished:
                result: tuple[Any, Events] = finished.value
                return result


@dataclass(frozen=True)
class _GuardedClient(ClientHalf[Any]):
    inner: ClientHalf[Any]

    @property
    def has_state(self) -> bool:
        return self.inner.has_state

    @property
    def wants_delivered(self) -> bool:
        return self.inner.wants_delivered

    def own_model(self, state: Any, received: Model, trainer: LocalTrainer) -> Model:
        with unchanged("the client's own model", state, received):
            return self.inner.own_model(state, received, trainer)

    def init(self) -> Any:
        return self.inner.init()

    def answer(self, request: Message, state: Any, trainer: LocalTrainer) -> Any:
        with unchanged("the client's answer", request, state):
            return self.inner.answer(request, state, trainer)

    def settle(self, state: Any, delivered: Message) -> Any:
        with unchanged("the client's settle", state, delivered):
            return self.inner.settle(state, delivered)


@dataclass(frozen=True)
class _GuardedLink(AroundLink):
    has_memory: ClassVar[bool] = True

    def share(self, tensors: Tensors, shared: Any, context: LinkContext) -> Any:
        with unchanged("a link's share", tensors, shared):
            return super().share(tensors, shared, context)

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        with unchanged("a link's send", tensors, state, context.shared):
            return super().send(tensors, state, context)

    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        with unchanged("a link's receive", state):
            return super().receive(parcel, state, context)

    def delivered(self, parcel: Parcel | None, state: Any, context: LinkContext) -> Tensors:
        with unchanged("a link's delivered", state):
            return super().delivered(parcel, state, context)


@dataclass(frozen=True)
class _GuardedCodec(Codec):
    inner: Codec
    drops_coordinates: ClassVar[bool] = False

    @property
    def uses_reference(self) -> bool:
        return self.inner.uses_reference

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        with unchanged("a codec's encode", tensors):
            return self.inner.encode(tensors, schema, rng)

    def encode_against(
        self, tensors: Tensors, schema: Schema, rng: np.random.Generator, reference: Tensors | None
    ) -> Parcel:
        with unchanged("a codec's encode", tensors, reference):
            return self.inner.encode_against(tensors, schema, rng, reference)


def _guarded_link(link: Link) -> Link:
    """Wrap a link; a plain link stays plain with a guarded codec, because its parcels are shared between clients."""
    return Plain(_GuardedCodec(link.codec)) if isinstance(link, Plain) else _GuardedLink(link)


def mirrored(method: Method, groups: Collection[str]) -> Method:
    """Return the same method, which fails if a receiver decodes other tensors than its sender predicts."""
    uplink = {group: MirroredLink(method.uplink.get(group, Plain())) for group in {*groups, *method.uplink}}
    downlink = {group: MirroredLink(method.downlink.get(group, Plain())) for group in {*groups, *method.downlink}}
    return replace(method, uplink=uplink, downlink=downlink)


@dataclass(frozen=True)
class MirroredLink(AroundLink):
    """A link that compares its two ends, client by client; for executors in one process."""

    predicted: dict[int, Tensors] = field(default_factory=dict)
    has_memory: ClassVar[bool] = True

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Record the tensors that the receiver should decode."""
        parcel, after = super().send(tensors, state, context)
        self.predicted[context.client] = self.delivered(parcel, after, context)
        return parcel, after

    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        """Decode and compare."""
        received, after = super().receive(parcel, state, context)
        assert is_equal(received, self.predicted[context.client]), (
            f"client {context.client}, round {context.round_number}: the two ends of {self.link} hold different tensors"
        )
        return received, after


class NothingElse:
    """A trainer that refuses abilities, such as gradients, that a method's needs do not declare."""

    def __init__(self, inner: LocalTrainer, needs: Needs) -> None:
        """Wrap `inner`."""
        self._inner = inner
        self._needs = needs
        self.client: int = inner.client
        self.schema: ModelSchema = inner.schema
        self.initial: Model = inner.initial

    @property
    def work(self) -> Work:
        """Work of the inner trainer."""
        return self._inner.work

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """Train; fail if corrections or steps are used without being declared."""
        self._check("corrections", correction is not None)
        self._check("steps", steps is not None)
        return self._inner.train(start, correction, steps, purpose)

    def gradient(self, at: Model, names: Collection[str], plan: BatchPlan, purpose: str) -> Tensors:
        """Return a gradient; fail if gradients are not declared."""
        self._check("gradients", True)
        return self._inner.gradient(at, names, plan, purpose)

    def loss(self, at: Model, purpose: str) -> float:
        """Return a loss; fail if losses are not declared."""
        self._check("losses", True)
        return self._inner.loss(at, purpose)

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """Delegate to the inner trainer."""
        return self._inner.evaluate(model, split)

    def rng(self, purpose: str) -> np.random.Generator:
        """Delegate to the inner trainer."""
        return self._inner.rng(purpose)

    def _check(self, need: str, is_used: bool) -> None:
        if is_used and not getattr(self._needs, need):
            raise AssertionError(f"the method uses {need}, but its needs do not declare it: Needs({need}=True)")
