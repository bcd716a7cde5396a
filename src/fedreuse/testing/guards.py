"""Guards around halves, links and trainers: they change nothing, and raise when something breaks its word."""

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
    """A hash of every array that some values hold."""
    total = sha256()
    for tree in trees:
        for array in arrays_of(tree):
            total.update(f"{array.dtype.str}{array.shape}".encode())
            total.update(array.tobytes())
    return total.hexdigest()


@contextmanager
def unchanged(what: str, *trees: object) -> Iterator[None]:
    """Fail if an input is changed inside, or could be: its arrays must be frozen."""
    before = digest(*trees)
    for tree in trees:
        for array in arrays_of(tree):
            assert not array.flags.writeable, f"{what} was given an array that can be written to"
    yield
    assert digest(*trees) == before, f"{what} changed its input"


def guarded(method: Method) -> Method:
    """The same method; a half or link that changes what it was given fails."""
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
    """The same method; a request that does not name its answers fails."""
    return replace(method, server=_NamedServer(method.server))


@dataclass(frozen=True)
class _NamedServer(ServerHalf[Any]):
    inner: ServerHalf[Any]

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
            assert not silent, (
                f"requests {silent} do not say what may answer them: Message(..., answers=(Answer(...),))"
            )
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
    """A plain link stays one, because its parcels are shared between clients."""
    return Plain(_GuardedCodec(link.codec)) if isinstance(link, Plain) else _GuardedLink(link)


def mirrored(method: Method, groups: Collection[str]) -> Method:
    """The same method; what each receiver decodes must be what the sender, from its own state, says it will."""
    uplink = {group: MirroredLink(method.uplink.get(group, Plain())) for group in {*groups, *method.uplink}}
    downlink = {group: MirroredLink(method.downlink.get(group, Plain())) for group in {*groups, *method.downlink}}
    return replace(method, uplink=uplink, downlink=downlink)


@dataclass(frozen=True)
class MirroredLink(AroundLink):
    """Compares both ends of a link, client by client; for executors that stay in one process."""

    said: dict[int, Tensors] = field(default_factory=dict)
    has_memory: ClassVar[bool] = True

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Note what the receiver is said to decode."""
        parcel, after = super().send(tensors, state, context)
        self.said[context.client] = self.delivered(parcel, after, context)
        return parcel, after

    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        """Decode and compare."""
        received, after = super().receive(parcel, state, context)
        assert is_equal(received, self.said[context.client]), (
            f"client {context.client}, round {context.round_number}: the two ends of {self.link} hold other tensors"
        )
        return received, after


class NothingElse:
    """A trainer that refuses what a method's needs do not ask for: gradients, corrections, numbers of steps."""

    def __init__(self, inner: LocalTrainer, needs: Needs) -> None:
        """`inner` does the work."""
        self._inner = inner
        self._needs = needs
        self.client: int = inner.client
        self.schema: ModelSchema = inner.schema
        self.initial: Model = inner.initial

    @property
    def work(self) -> Work:
        """As the trainer."""
        return self._inner.work

    def train(
        self, start: Model, correction: Correction | None = None, steps: int | None = None, purpose: str = "batches"
    ) -> Trained:
        """As the trainer, unless something is asked that was not said."""
        self._check("corrections", correction is not None)
        self._check("steps", steps is not None)
        return self._inner.train(start, correction, steps, purpose)

    def gradient(self, at: Model, names: Collection[str], plan: BatchPlan, purpose: str) -> Tensors:
        """As the trainer, if the method said so."""
        self._check("gradients", True)
        return self._inner.gradient(at, names, plan, purpose)

    def evaluate(self, model: Model, split: SplitName = "validation") -> Metrics:
        """As the trainer."""
        return self._inner.evaluate(model, split)

    def rng(self, purpose: str) -> np.random.Generator:
        """As the trainer."""
        return self._inner.rng(purpose)

    def _check(self, need: str, is_asked: bool) -> None:
        if is_asked and not getattr(self._needs, need):
            raise AssertionError(f"the method asks for {need}, but its needs do not say so: Needs({need}=True)")
