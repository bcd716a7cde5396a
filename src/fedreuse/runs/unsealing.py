"""Opening the sealed test split of a complete run: once, recorded, with the results of an unsealed run."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from fedreuse.config.run_config import load
from fedreuse.core.errors import RunDirectoryError
from fedreuse.engine.executors.serial import Serial
from fedreuse.runs.launch import prepare, storing
from fedreuse.store.directory import JOURNAL, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["check_sealed", "unseal"]


def unseal(run: str | Path, *, allow: Sequence[str | Path] = ()) -> RunDirectory:
    """Test the model of a complete run whose configuration says `test: sealed`.

    Args:
        run: The run directory. Its dataset must be available, as it was for the run.
        allow: Modules, packages or folders whose code its configuration may name, as in `load`.

    Returns:
        The run directory, whose summary now holds the test score.

    Raises:
        RunDirectoryError: The run is not complete, was tested already, has lost the checkpoint that a sealed run
            keeps, or is in use by another process.

    Example:
        >>> from fedreuse import run, unseal
        >>> config = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp",
        ...           "rounds": {"count": 1, "cohort": 2}, "test": "sealed"}
        >>> run(config, "closed").summary["test_score"] is None
        True
        >>> unseal("closed").summary["test_examples"]
        355
    """
    directory = RunDirectory.open(run)
    check_sealed(directory)
    config = replace(load(directory.config, allow=allow), executor=Serial())
    with ExitStack() as stack:
        directory.lock()
        stack.callback(directory.release)
        check_sealed(directory)  # another process may have opened it before we had the lock
        stack.enter_context(storing(directory))
        live = stack.enter_context(prepare(config, directory, None))
        directory.log("the test split is opened")
        live.finish(live.scores.test(live.result))
    return directory


def check_sealed(directory: RunDirectory) -> None:
    """Refuse a run whose test split is not sealed."""
    place = directory.path
    if directory.summary and not directory.is_sealed:
        raise RunDirectoryError(f"{place} was tested already, and a run is tested once; show it with `fedreuse show`")
    if not (place / JOURNAL).exists():
        raise RunDirectoryError(
            f"{place}: {JOURNAL} is missing, without which a sealed run cannot be opened; restore it from a "
            "copy, or run the configuration again in another --out"
        )
