"""`fedreuse deploy --local N`: run a configuration or a study on Flower nodes of this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from fedreuse.cli.output import counted, say, show_json, show_lines
from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.listener import Listener
    from fedreuse.deploy.flower.authority import Authority
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.deploy.local.federation import LocalFederation
    from fedreuse.deploy.local.run import Form
    from fedreuse.deploy.meter.metered import Metering
    from fedreuse.store.directory import RunDirectory
    from fedreuse.studies.study import Study

__all__ = ["LocalNodes", "metering_of", "run_configuration", "run_study"]


@dataclass(frozen=True)
class LocalNodes:
    """Nodes of `--local N` and the options for them.

    Args:
        count: Number of nodes, one per client.
        tls: Encrypt, with a test authority and a key per node.
        metering: Byte meter and line conditions; None for neither.
        data: Folder with clients/0, clients/1, ... (task at_home).
        is_resident: Keep one worker per node instead of a process per message.
    """

    count: int
    tls: bool = False
    metering: Metering | None = None
    data: Path | None = None
    is_resident: bool = True

    def form(self, run_folder: Path) -> Form:
        """Return the options of the federation, with certificates below the run's folder if needed."""
        from fedreuse.deploy.local.run import Form

        return Form(
            authority=self._authority(run_folder / "federation" / "authority") if self.tls else None,
            metering=self.metering,
            data=_client_folders(self.data, self.count),
            is_resident=self.is_resident,
        )

    def _authority(self, folder: Path) -> Authority:
        from fedreuse.deploy.flower.authority import Authority, make_authority
        from fedreuse.deploy.meter.packet_line import DOOR_ADDRESS

        if (folder / "ca.pem").exists():  # a resumed run keeps its keys, which the roster names
            return Authority(folder)
        # a metered node reaches the SuperLink under another address, which the certificate must name
        hosts = ["127.0.0.1", "localhost", *([] if self.metering is None else [DOOR_ADDRESS])]
        return make_authority(folder, self.count, hosts)


def metering_of(kind: str | None, line: tuple[str | None, str | None, str | None], both_ways: bool) -> Metering | None:
    """Return the meter of `--meter` with bandwidth, delay and loss of the line; None without a meter.

    Raises:
        ConfigError: An unknown meter, or line conditions without one.
    """
    from fedreuse.deploy.meter.conditions import FREE, Conditions
    from fedreuse.deploy.meter.metered import Metering

    up = Conditions.parse(*line)
    if kind is None:
        if up != FREE:
            raise ConfigError("--bandwidth, --delay and --loss need a line to act on; add --meter namespace")
        return None
    if kind not in ("relay", "namespace"):
        raise ConfigError(f"--meter must be relay or namespace, got {kind!r}")
    return Metering(cast("Literal['relay', 'namespace']", kind), up, up if both_ways else FREE)


def run_configuration(planned: RunConfig, options: Deployment, nodes: LocalNodes, as_json: bool) -> None:
    """Run one configuration on local nodes, into `options.out`, and print its result."""
    from fedreuse.cli.run import tell_result
    from fedreuse.deploy.local.run import check_nodes, run_local
    from fedreuse.report.results import plain, read_run
    from fedreuse.runs.claim import check_ours
    from fedreuse.runs.listeners.progress import Watcher

    check_nodes(planned, nodes.count)
    check_ours(Path(options.out))
    form = nodes.form(Path(options.out))
    if not as_json:
        extent = f"{counted(planned.rounds.count, 'round')} on {counted(nodes.count, 'node')}"
        show_lines(f"{planned.label}: {extent} into {options.out}")
    with Watcher(stderr=as_json, echo=say) as watcher:
        directory = run_local(planned, options, watcher, form)
    result = read_run(directory)
    if as_json:
        show_json(plain(result))
    else:
        tell_result(result)


def run_study(study: Study, options: Deployment, out: Path | None, nodes: LocalNodes, as_json: bool) -> None:
    """Run the runs of a study one after the other on one local federation, and print the comparison."""
    from fedreuse.cli.compare import finish, run_all
    from fedreuse.deploy.local.run import check_nodes, local_federation, run_on
    from fedreuse.studies.running import require_own

    for planned in study.runs:
        check_nodes(planned.config, nodes.count)
    folder = out or Path("runs") / study.name
    require_own(study, folder)
    with local_federation(folder / "federation", nodes.count, nodes.form(folder)) as federation:
        _show_notes(federation, as_json)

        def run_on_nodes(config: RunConfig, directory: Path, listener: Listener | None) -> RunDirectory:
            return run_on(federation, config, replace(options, out=str(directory), resume=True), listener)

        failed = run_all(study, folder, as_json, runner=run_on_nodes)
    finish(study, folder, failed, as_json)


def _show_notes(federation: LocalFederation, as_json: bool) -> None:
    for note in getattr(federation.line, "notes", ()):
        say(f"note: {note}", err=as_json)


def _client_folders(data: Path | None, num_nodes: int) -> dict[int, Path]:
    """Return the folder of each client, as `data split` writes them."""
    from fedreuse.learning.files.layout import CLIENTS

    if data is None:
        return {}
    folders = {int(path.name): path for path in (data / CLIENTS).glob("*") if path.name.isdecimal()}
    if sorted(folders) != list(range(num_nodes)):
        raise ConfigError(
            f"--data {data}: there must be folders {CLIENTS}/0 to {CLIENTS}/{num_nodes - 1}, one per node, as "
            f"`fedreuse data split` writes them; found {sorted(folders)[:10]}"
        )
    return folders
