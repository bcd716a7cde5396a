"""Entry point of the command `fedreuse` and of `python -m fedreuse`."""

from __future__ import annotations

import sys

from fedreuse.core.extras import MissingPackage, needs_package

__all__ = ["main"]


def main() -> None:
    """Run the command line; where its packages are missing, name the extra and exit with code 2."""
    try:
        with needs_package("the command line"):
            from fedreuse.cli import main as run_command
    except MissingPackage as error:
        sys.stderr.write(f"error: {error} (or pip install 'fedreuse[sim]', which also runs simulations)\n")
        sys.exit(2)
    run_command()


if __name__ == "__main__":
    main()
