"""NVFlare filters that send models through a channel, in both directions.

Each filter is part of two chains: task data and task results. The server's encodes tasks and decodes results; the
client's decodes tasks and encodes results. NVFlare creates an object per chain; those of one job share a channel.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply

from fedreuse.channel import AskAgain, ClientChannel, SendBack, ServerChannel
from fedreuse.channel.coding import parse_coding
from fedreuse.core.errors import RunError

__all__ = ["KEY", "ClientFilter", "ServerFilter", "compress"]

KEY = "compressed: this site needs fedreuse.deploy.nvflare.filters.ClientFilter"
"""Name of the only entry of a compressed DXO; an executor without the filter fails with it."""
TASKS = ("train", "validate")
_CONFIRMATION = "fedreuse.confirmation"
_RESYNC = "fedreuse.resync"
_REPLY, _REQUEST = "reply", "request"
_TENSORS = "fedreuse.tensors"
_ALGORITHM = "fedreuse"
_RESYNC_SECONDS = 300.0
_TRIALS = 3
_MODELS = (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF)
_log = logging.getLogger("fedreuse")
C = TypeVar("C", ServerChannel, ClientChannel)


class _End(Generic[C]):
    """The channel of a job at one site, shared by its filters."""

    def __init__(self, channel: C) -> None:
        self.channel: C = channel
        self.models: dict[str, Any] = {}
        """At the server, the model of the last task of each client, to send it again."""


_ends: dict[tuple[str, str], _End[Any]] = {}
_listening: set[tuple[str, str]] = set()
_lock = Lock()


class _ChannelFilter(Filter):  # type: ignore[misc]  # NVFlare has no types
    """Base class of both filters: the channel of their job, and its end."""

    folder: str | None

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Encode or decode the model of a task or result; everything else passes unchanged."""
        if shareable.get_return_code() not in (None, ReturnCode.OK):
            return shareable
        if fl_ctx.get_prop(FLContextKey.FILTER_DIRECTION) == FilterKey.OUT:
            return self._encode(shareable, fl_ctx)
        return self._decode(shareable, fl_ctx)

    def _encode(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        raise NotImplementedError

    def _decode(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        raise NotImplementedError

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Release the channel's folder when the job ends."""
        if event_type == EventType.END_RUN:
            with _lock:
                end = _ends.pop(_key(fl_ctx), None)
                _listening.discard(_key(fl_ctx))
            if end is not None:
                end.channel.close()

    def _shared(self, fl_ctx: FLContext, make: Callable[[Path], C]) -> _End[C]:
        with _lock:
            key = _key(fl_ctx)
            if key not in _ends:
                _ends[key] = _End(make(self._folder(fl_ctx)))
            return _ends[key]

    def _folder(self, fl_ctx: FLContext) -> Path:
        """Return the folder of the state: of this job, or with `folder` of all jobs of the site."""
        workspace, name = fl_ctx.get_workspace(), fl_ctx.get_identity_name()
        if self.folder is None:
            return Path(workspace.get_run_dir(fl_ctx.get_job_id())) / "fedreuse"
        return Path(str(workspace.get_root_dir())) / self.folder / str(name)


class ServerFilter(_ChannelFilter):
    """The server's filter, for task data (out) and task results (in).

    Args:
        coding: `exact`, `top_k`, `lean` or links, as in `fedreuse.ServerChannel`.
        folder: Folder below the site's workspace for the state, which later jobs then continue: their first model is
            sent as a difference. None: a folder of the job.

    Raises:
        ConfigError: An invalid coding.

    Example: `recipe.add_server_output_filter(ServerFilter("exact"))`, and the same with `add_server_input_filter`.
    """

    def __init__(self, coding: str | Mapping[str, Any] = "exact", folder: str | None = None) -> None:
        """Check the coding."""
        super().__init__()
        parse_coding(coding)
        self.coding, self.folder = coding, folder

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Listen for clients that lost their state."""
        if event_type == EventType.START_RUN and _is_first(_key(fl_ctx)):
            fl_ctx.get_engine().register_aux_message_handler(_RESYNC, self._resync)
        super().handle_event(event_type, fl_ctx)

    def _end(self, fl_ctx: FLContext) -> _End[ServerChannel]:
        return self._shared(fl_ctx, lambda folder: ServerChannel(self.coding, folder))

    def _encode(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        dxo = _model_of(shareable)
        if dxo is None:
            return shareable
        end, client = self._end(fl_ctx), _peer(fl_ctx)
        end.models[client] = dxo.data
        return _replaced(shareable, dxo, {KEY: end.channel.encode(dxo.data, client)})

    def _decode(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        end, client = self._end(fl_ctx), _peer(fl_ctx)
        if (confirmation := shareable.get_header(_CONFIRMATION)) is not None:
            end.channel.decode(confirmation, client)
        dxo = _model_of(shareable)
        if dxo is None:
            return shareable
        if KEY not in dxo.data:
            raise RunError(
                f"{client} answers with an uncompressed model; add fedreuse.deploy.nvflare.filters.ClientFilter to its "
                "task_data_filters and task_result_filters, or remove ServerFilter from the server"
            )
        is_update = dxo.data_kind == DataKind.WEIGHT_DIFF
        return _replaced(shareable, dxo, end.channel.decode(dxo.data[KEY], client, as_update=is_update))

    def _resync(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        """Answer a client that could not decode its task with the whole model."""
        del topic
        end, client = self._end(fl_ctx), _peer(fl_ctx)
        try:
            end.channel.decode(request[_REPLY], client)
        except AskAgain as error:
            _log.warning("%s is sent the whole model again", error)
            reply = make_reply(ReturnCode.OK)
            reply[_REQUEST] = end.channel.encode(end.models[client], client)
            return reply
        return make_reply(ReturnCode.BAD_REQUEST_DATA)


class ClientFilter(_ChannelFilter):
    """The clients' filter, for task data (in) and task results (out); it learns the coding from the server.

    Args:
        folder: Folder below the site's workspace for the state, which later jobs then continue. None: of the job.

    Example: `recipe.add_client_input_filter(ClientFilter())`, and the same with `add_client_output_filter`.
    """

    def __init__(self, folder: str | None = None) -> None:
        """Keep the folder's name."""
        super().__init__()
        self.folder = folder

    def _end(self, fl_ctx: FLContext) -> _End[ClientChannel]:
        name = fl_ctx.get_identity_name()
        return self._shared(fl_ctx, lambda folder: ClientChannel(name, folder))

    def _decode(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        dxo = _model_of(shareable)
        if dxo is None:
            return shareable
        if KEY not in dxo.data:
            raise RunError(
                "the server sent an uncompressed model; add fedreuse.deploy.nvflare.filters.ServerFilter to its "
                "task_data_filters and task_result_filters, or remove ClientFilter from this site"
            )
        end, data = self._end(fl_ctx), dxo.data[KEY]
        for _ in range(_TRIALS):
            try:
                return _replaced(shareable, dxo, end.channel.decode(data))
            except SendBack as error:
                data = self._ask_again(error, fl_ctx)
        raise RunError("the server's models cannot be decoded here, not even a whole one")

    def _encode(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        end, dxo = self._end(fl_ctx), _model_of(shareable)
        if dxo is not None:
            is_update = dxo.data_kind == DataKind.WEIGHT_DIFF
            return _replaced(shareable, dxo, {KEY: end.channel.encode(dxo.data, is_update=is_update)})
        if end.channel.is_asked:  # metrics, for instance: confirm the model that they belong to
            shareable.set_header(_CONFIRMATION, end.channel.encode())
        return shareable

    @staticmethod
    def _ask_again(error: SendBack, fl_ctx: FLContext) -> bytes:
        request = Shareable()
        request[_REPLY] = error.reply
        answers = fl_ctx.get_engine().send_aux_request(
            targets=None, topic=_RESYNC, request=request, timeout=_RESYNC_SECONDS, fl_ctx=fl_ctx
        )
        answer = next(iter(answers.values()), None)
        if not isinstance(answer, Shareable) or _REQUEST not in answer:
            raise RunError(f"{error}, but the server does not answer")
        data: bytes = answer[_REQUEST]
        return data


def compress(
    recipe: Any, coding: str | Mapping[str, Any] = "exact", folder: str | None = None, tasks: Sequence[str] = TASKS
) -> None:
    """Add both filters to a recipe of NVFlare, each for task data and task results.

    Args:
        recipe: The recipe, such as `FedAvgRecipe`.
        coding: As in `ServerFilter`.
        folder: As in `ServerFilter`, at every site.
        tasks: Names of the tasks that carry models.

    Example: `compress(recipe, {"name": "top_k", "ratio": 0.05})`.
    """
    # Otherwise NVFlare sends the source of this package to every site with the job.
    configuration = recipe._job.job  # 2.9 has no public way
    configuration.set_app_packages([*configuration.app_packages, "fedreuse"])
    recipe.add_server_output_filter(ServerFilter(coding, folder), tasks=list(tasks))
    recipe.add_server_input_filter(ServerFilter(coding, folder), tasks=list(tasks))
    recipe.add_client_input_filter(ClientFilter(folder), tasks=list(tasks))
    recipe.add_client_output_filter(ClientFilter(folder), tasks=list(tasks))


def _key(fl_ctx: FLContext) -> tuple[str, str]:
    return fl_ctx.get_identity_name(), fl_ctx.get_job_id()


def _is_first(key: tuple[str, str]) -> bool:
    """Return whether no filter of the job listens yet; NVFlare accepts one listener per topic."""
    with _lock:
        is_first = key not in _listening
        _listening.add(key)
    return is_first


def _peer(fl_ctx: FLContext) -> str:
    name: str = fl_ctx.get_peer_context().get_identity_name()
    return name


def _model_of(shareable: Shareable) -> DXO | None:
    """Return the DXO of a model or an update; None for anything else."""
    try:
        dxo = from_shareable(shareable)
    except ValueError:  # not a DXO
        return None
    return dxo if dxo.data_kind in _MODELS and dxo.data else None


def _replaced(shareable: Shareable, dxo: DXO, data: Mapping[str, Any]) -> Shareable:
    """Return the message with other data; the original may be on its way to other clients."""
    meta = {name: entry for name, entry in (dxo.meta or {}).items() if name != _TENSORS}
    if KEY in data:
        meta[MetaKey.PROCESSED_ALGORITHM] = _ALGORITHM
        if any(hasattr(array, "detach") for array in dxo.data.values()):
            meta[_TENSORS] = True
    else:
        meta.pop(MetaKey.PROCESSED_ALGORITHM, None)
        data = _as_tensors(data) if (dxo.meta or {}).get(_TENSORS) else data
    return DXO(dxo.data_kind, dict(data), meta).update_shareable(copy.copy(shareable))


def _as_tensors(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return torch tensors, where the other end gave tensors; its job has torch at this end, too."""
    import torch

    return {name: torch.from_numpy(array) for name, array in arrays.items()}
