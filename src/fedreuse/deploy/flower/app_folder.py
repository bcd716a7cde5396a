"""A Flower app folder: a server module, a client module, and a pyproject.toml with the run's flat keys."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import fedreuse
from fedreuse.core.errors import RunDirectoryError
from fedreuse.deploy.flower.flat_config import Flat, to_flat

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.deploy.flower.options import Deployment

__all__ = ["PACKAGE", "write_app"]

PACKAGE = "fedreuse_app"
_SERVER = '''"""Server app of fedreuse."""

from fedreuse.deploy.flower.server import app

__all__ = ["app"]
'''
_CLIENT = '''"""Client app of fedreuse."""

from fedreuse.deploy.flower.client import app

__all__ = ["app"]
'''
_PROJECT = """# A Flower app that runs one fedreuse configuration.
# Start it with `flwr run . <federation>`; change keys with --run-config "rounds.count=20 seed=202".
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "1.0.0"
description = "{title}"
dependencies = ["fedreuse[sim,deploy]=={version}"]

[tool.setuptools]
packages = ["{package}"]

[tool.flwr.app]
publisher = "fedreuse"

[tool.flwr.app.components]
serverapp = "{package}.server:app"
clientapp = "{package}.client:app"

# Keys of the configuration and of the deployment. Values other than numbers, text and flags are YAML.
[tool.flwr.app.config]
{config}
"""


def write_app(config: RunConfig, options: Deployment, folder: Path) -> Path:
    """Write the four files of an app, over an existing app of fedreuse.

    Raises:
        RunDirectoryError: The folder holds anything else.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / PACKAGE / "server.py").exists():
        raise RunDirectoryError(f"{folder} holds other files than an app of fedreuse; choose another folder")
    files = {
        f"{PACKAGE}/__init__.py": '"""A Flower app written by `fedreuse deploy`."""\n',
        f"{PACKAGE}/server.py": _SERVER,
        f"{PACKAGE}/client.py": _CLIENT,
        "pyproject.toml": _project(config, options),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _project(config: RunConfig, options: Deployment) -> str:
    return _PROJECT.format(
        name=f"fedreuse-{config.run_id}",  # Flower allows at most 32 letters, digits and hyphens
        title=f"fedreuse run {config.label}",
        version=fedreuse.__version__,
        package=PACKAGE,
        config=_toml(to_flat(config, options)),
    )


def _toml(flat: Flat) -> str:
    """Return one line per key; JSON scalars are valid TOML, except non-finite floats."""
    return "\n".join(f"{_key(key)} = {json.dumps(value)}" for key, value in flat.items())


def _key(dotted: str) -> str:
    return ".".join(word if re.fullmatch(r"[A-Za-z0-9_-]+", word) else json.dumps(word) for word in dotted.split("."))
