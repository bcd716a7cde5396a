"""Writes the inputs that the fuzzer starts from: `python -m tests.fuzz.seed`; inputs that it found stay."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.frames import frame_seeds
from tests.fuzz.harness import seeds

CORPUS = Path(__file__).parent / "corpus"
FRAME_CORPUS = Path(__file__).parent / "frame_corpus"


def main() -> None:
    """One file per seed."""
    for folder, inputs in ((CORPUS, seeds()), (FRAME_CORPUS, frame_seeds())):
        folder.mkdir(exist_ok=True)
        for name, data in inputs.items():
            (folder / f"seed-{name}").write_bytes(data)


if __name__ == "__main__":
    main()
