"""TensorBoard listener: event files with a curve for every number of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from fedreuse.core.errors import ConfigError
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener, ListenerConfig, listeners
from fedreuse.runs.listeners.scalars import of_evaluation, of_round, of_summary
from fedreuse.runs.replay import replay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.utils.tensorboard import SummaryWriter

    from fedreuse.core.events import Evaluated, Finished, Started

__all__ = ["TensorBoard"]


@listeners.register("tensorboard")
@dataclass(frozen=True)
class TensorBoard(ListenerConfig):
    """Write scores, bytes under every boundary, events, work and the configuration for TensorBoard.

    Args:
        folder: Folder for the event files of all runs, each in a folder named like its run directory. None:
            `tensorboard` in the run directory, so that `tensorboard --logdir runs` shows every run below `runs`.

    Needs the extra `track` (`pip install 'fedreuse[track]'`).

    Raises:
        ConfigError: When TensorBoard is not installed.

    Example:
        listeners: [{name: tensorboard}]
    """

    folder: str | None = None

    def start(self) -> Listener:
        """Return a listener for one run."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                f"listeners: tensorboard cannot be imported ({error}); install it with: pip install 'fedreuse[track]'"
            ) from None
        return _TensorBoardListener(self.folder, SummaryWriter)


class _TensorBoardListener(Listener):
    """Writer of one run; a resumed run purges the events of an earlier start and writes the stored rounds again."""

    def __init__(self, folder: str | None, writer: type[SummaryWriter]) -> None:
        self._folder, self._open = folder, writer

    def started(self, event: Started) -> None:
        """Open a file, and write the configuration and the stored rounds."""
        own = event.directory.path
        place = own / "tensorboard" if self._folder is None else Path(self._folder) / own.name
        self._writer = self._open(str(place), purge_step=0)
        shown = yaml.safe_dump(event.config.to_plain(), sort_keys=False)
        self._writer.add_text("configuration", "".join(f"    {line}\n" for line in shown.splitlines()), 0)
        for earlier in replay(event.directory):
            self.round_done(earlier) if isinstance(earlier, RoundDone) else self.evaluated(earlier)

    def evaluated(self, event: Evaluated) -> None:
        """Write the scores."""
        self._add(of_evaluation(event), event.round_number)

    def round_done(self, event: RoundDone) -> None:
        """Write bytes, events, work and seconds."""
        self._add(of_round(event), event.round_number)
        self._writer.flush()

    def finished(self, event: Finished) -> None:
        """Write test scores and savings at the last round."""
        self._add(of_summary(event), int(event.summary["rounds"]))

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _add(self, scalars: Mapping[str, float], number: int) -> None:
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, number)
