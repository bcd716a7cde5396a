"""The fuzzer: `python -m tests.fuzz [--frames] [libFuzzer options] FOLDERS`; coverage guides what is tried next.

It tries messages, or with `--frames` what a node of a deployment says around them.

Each execution has 5 seconds and, all together, a fixed amount of memory beyond what the imports need.
"""

from __future__ import annotations

import re
import resource
import sys
import warnings
from pathlib import Path

import atheris
import numpy as np

FRAMES = "--frames"
WATCHED = [
    "fedreuse.compression.wire",
    "fedreuse.compression.codecs",
    "fedreuse.compression.links",
    "fedreuse.deploy.flower",
]
with atheris.instrument_imports(include=WATCHED):
    from tests.fuzz.frames import check_frame, mutate_frame
    from tests.fuzz.harness import check, mutate

MAX_INPUT = 16_384
EXTRA_BYTES = 256 * 2**20
RNG = np.random.default_rng(0)


def execute(data: bytes) -> None:
    """One execution: refused, or right."""
    check(data)


def change(data: bytes, max_size: int, seed: int) -> bytes:
    """Half of the time any change of the bytes, half of the time one that keeps the form of a message."""
    del seed  # the calls come in the same order from the same -seed
    if RNG.random() < 0.4 or len(data) < 4:
        return bytes(atheris.Mutate(data, max_size))
    return mutate(data, RNG, lambda part: atheris.Mutate(part, max(len(part), min(len(part) + 64, max_size))))[
        :max_size
    ]


def change_frame(data: bytes, max_size: int, seed: int) -> bytes:
    """The same for a frame."""
    del seed
    if RNG.random() < 0.5 or len(data) < 2:
        return bytes(atheris.Mutate(data, max_size))
    return mutate_frame(data, RNG)[:max_size]


def main() -> None:
    """Bound memory and time, then run until an option or a finding ends it."""
    warnings.simplefilter("error")
    used = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))[1]) * 1024  # type: ignore[index]
    resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA_BYTES, used + EXTRA_BYTES))
    given = [word for word in sys.argv[1:] if word != FRAMES]
    options = [f"-max_len={MAX_INPUT}", "-timeout=5", "-rss_limit_mb=0", *given]
    target, changed = (check_frame, change_frame) if FRAMES in sys.argv else (execute, change)
    atheris.Setup([sys.argv[0], *options], target, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
