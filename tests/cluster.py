"""A Ray cluster on this machine for tests: nodes that can be added and killed, and nothing left behind."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

# a node that is gone refuses the connection at once; the timeout is for one that is only slow, beside other load
_QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 30000,
    "health_check_failure_threshold": 3,
}


@contextmanager
def ray_cluster(*cpus: int) -> Iterator[Any]:
    """One node per number of CPUs, the first being the head; this process is connected to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray leaves files and processes to the garbage collector
        import ray
        from ray.cluster_utils import Cluster

        head = {"num_cpus": cpus[0], "include_dashboard": False, "_system_config": _QUICK_TO_NOTICE}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for count in cpus[1:]:
                cluster.add_node(num_cpus=count)
            ray.init(cluster.address, log_to_driver=False, configure_logging=False)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
            gc.collect()
