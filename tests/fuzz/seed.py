"""Writes the inputs that the fuzzer starts from: `python -m tests.fuzz.seed`; inputs that it found stay."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.harness import seeds

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    """One file per seed."""
    CORPUS.mkdir(exist_ok=True)
    for name, data in seeds().items():
        (CORPUS / f"seed-{name}").write_bytes(data)


if __name__ == "__main__":
    main()
