"""Listeners: whoever hears a run, to show it, to store it elsewhere, or to stop it.

A run tells typed events to its listeners. Name the ones below in a configuration,

    listeners: [{name: tensorboard}, {name: mlflow, experiment: digits}, {name: csv}, {name: progress}]

or derive your own from `Listener` and give it to `run(config, listeners=[...])`, or name it `package.module:Name`.
Listeners are no part of the run's identity: with and without them a run ends in the same bits.
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
