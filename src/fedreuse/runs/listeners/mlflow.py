"""MLflow listener: a study is an experiment, and each of its runs a run of MLflow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Any

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import ConfigError
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener, ListenerConfig, listeners
from fedreuse.runs.listeners.scalars import flatten, of_evaluation, of_round, of_summary
from fedreuse.runs.replay import replay

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from fedreuse.core.events import Evaluated, Failed, Finished, Started, Stopped
    from fedreuse.store.directory import RunDirectory

__all__ = ["MLflow"]

_MARK = "mlflow.json"
"""File in the run directory with the id of MLflow's run, so that a resumed run continues it."""
_SECONDS = "time/seconds"  # the last metric of a round that is logged
_MOST_PARAMS = 100  # of one request
_LONGEST_PARAM = 6000


@listeners.register("mlflow")
@dataclass(frozen=True)
class MLflow(ListenerConfig):
    """Log scores, bytes under every boundary, events, work and the configuration to MLflow.

    Args:
        experiment: The experiment's name. None: the name of the folder in which the run directory lies, which makes a
            study one experiment.
        tracking_uri: Address of MLflow's store, such as `sqlite:///mlflow.db` or `http://127.0.0.1:5000`. None: as
            MLflow is configured (`MLFLOW_TRACKING_URI`, or its own default).

    Needs the extra `track` (`pip install 'fedreuse[track]'`). MLflow's usage reports are switched off unless
    `MLFLOW_DISABLE_TELEMETRY` says otherwise.

    Raises:
        ConfigError: When MLflow is not installed.

    Example:
        listeners: [{name: mlflow, experiment: digits, tracking_uri: "sqlite:///mlflow.db"}]
    """

    experiment: str | None = None
    tracking_uri: str | None = None

    def start(self) -> Listener:
        """Return a listener for one run."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        try:
            import mlflow
        except ImportError as error:
            raise ConfigError(
                f"listeners: mlflow cannot be imported ({error}); install it with: pip install 'fedreuse[track]'"
            ) from None
        return _MLflowListener(self, mlflow)


class _MLflowListener(Listener):
    """Logs one run."""

    def __init__(self, settings: MLflow, library: ModuleType) -> None:
        self._settings, self._library = settings, library

    def started(self, event: Started) -> None:
        """Create MLflow's run, or continue the one of an earlier start."""
        self._client = self._library.MlflowClient(tracking_uri=self._settings.tracking_uri)
        self._run = self._known(event.directory) or self._create(event)
        self._client.update_run(self._run, status="RUNNING")
        known = {metric.step for metric in self._client.get_metric_history(self._run, _SECONDS)}
        for earlier in replay(event.directory):  # stored, but not logged before a crash
            number = earlier.round_number
            if number not in known:
                self.round_done(earlier) if isinstance(earlier, RoundDone) else self.evaluated(earlier)

    def evaluated(self, event: Evaluated) -> None:
        """Log the scores."""
        self._log(of_evaluation(event), event.round_number)

    def round_done(self, event: RoundDone) -> None:
        """Log bytes, events, work and seconds."""
        self._log(of_round(event), event.round_number)

    def finished(self, event: Finished) -> None:
        """Log test scores and savings at the last round."""
        self._log(of_summary(event), int(event.summary["rounds"]))
        self._client.set_tag(self._run, "fedreuse.model_digest", event.summary["model_digest"])
        self._client.set_terminated(self._run, "FINISHED")

    def stopped(self, event: Stopped) -> None:
        """Mark the run as killed, which is MLflow's word for it."""
        self._client.set_tag(self._run, "fedreuse.stopped", event.reason)
        self._client.set_terminated(self._run, "KILLED")

    def failed(self, event: Failed) -> None:
        """Log the error as a tag."""
        self._client.set_tag(self._run, "fedreuse.error", str(event.error)[:_LONGEST_PARAM])
        self._client.set_terminated(self._run, "FAILED")

    def _known(self, directory: RunDirectory) -> str | None:
        mark = directory.path / _MARK
        if not mark.exists():
            return None
        number: str = read_json(mark)["run"]
        try:
            self._client.get_run(number)
        except self._library.MlflowException:  # kept elsewhere, or deleted
            return None
        return number

    def _create(self, event: Started) -> str:
        directory, config = event.directory, event.config
        name = self._settings.experiment or directory.path.absolute().parent.name
        tags = {"fedreuse.run_id": config.run_id, "fedreuse.directory": str(directory.path)}
        run = self._client.create_run(self._experiment(name), tags=tags, run_name=directory.path.name)
        number: str = run.info.run_id
        self._log_configuration(number, config.to_plain())
        directory.write_json(_MARK, {"experiment": name, "run": number})
        return number

    def _experiment(self, name: str) -> str:
        """Return the id of the experiment; runs of a study that start together may both try to create it."""
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name))
            except self._library.MlflowException:
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)

    def _log_configuration(self, number: str, plain: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        params = [Param(key, str(value)[:_LONGEST_PARAM]) for key, value in flatten(plain).items()]
        for start in range(0, len(params), _MOST_PARAMS):
            self._client.log_batch(number, params=params[start : start + _MOST_PARAMS])

    def _log(self, scalars: Mapping[str, float], number: int) -> None:
        from mlflow.entities import Metric

        now = int(time() * 1000)
        self._client.log_batch(self._run, [Metric(name, value, now, number) for name, value in scalars.items()])
