"""Listeners (callbacks) of a run: progress, CSV files, TensorBoard, MLflow.

A run sends typed events to its listeners, and each may stop it. Name the ones below in a configuration,

    listeners: [{name: tensorboard}, {name: mlflow, experiment: digits}, {name: csv}, {name: progress}]

or derive your own from `Listener` and pass it to `run(config, listeners=[...])`, or name it `package.module:Name`.
Listeners are not part of the run's identity: results are bit-identical with and without them.
"""

from fedreuse.core.events import Evaluated, Failed, Finished, RoundDone, RunEvent, Started, Stop, Stopped
from fedreuse.core.listener import Listener, ListenerConfig, listeners

__all__ = [
    "Evaluated",
    "Failed",
    "Finished",
    "Listener",
    "ListenerConfig",
    "RoundDone",
    "RunEvent",
    "Started",
    "Stop",
    "Stopped",
    "listeners",
]
