"""The command line: `fedreuse --help` lists what it can do. Heavy imports wait until a command needs them."""

from fedreuse.cli import (
    bench,
    compare,
    confirm,
    data,
    data_show,
    demo,
    deploy,
    export,
    gate,
    listing,
    new_method,
    run,
    show,
    sizes,
    wire,
)
from fedreuse.cli.app import app, main

__all__ = [
    "app",
    "bench",
    "compare",
    "confirm",
    "data",
    "data_show",
    "demo",
    "deploy",
    "export",
    "gate",
    "listing",
    "main",
    "new_method",
    "run",
    "show",
    "sizes",
    "wire",
]
