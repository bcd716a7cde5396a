"""State of an unfinished run in the server's folder: what each node holds, and the strategy's last arrays.

`run.json` names the run and its nodes; `model-V.safetensors` holds the arrays, `node-K.safetensors` the links to one
node. A reply counts only once its file is written: a killed server app continues from the last absorbed replies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.core.model import Model
from fedreuse.engine.state.records import Contact
from fedreuse.engine.state.state_file import map_state, write_state

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema

__all__ = ["RunState"]

_FILE = "run.json"


@dataclass
class RunState:
    """Files of one run.

    Args:
        folder: The folder.
        schema: Schema of the model.
    """

    folder: Path
    schema: ModelSchema

    def read(self) -> dict[str, Any] | None:
        """Return agreement, name, version and nodes of the unfinished run; None if there is none for this schema."""
        try:
            plain: dict[str, Any] = read_json(self.folder / _FILE)
            return plain if plain["schema"] == self.schema.digest else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def write(self, agreement: str, run: str, version: int, nodes: dict[int, int], model: Model | None = None) -> None:
        """Write agreement, name, version and nodes, and the model if it is a new version."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if model is not None:
            write_whole(self.folder / f"model-{version}.safetensors", write_state(model, self.schema), is_private=True)
        plain = {"schema": self.schema.digest, "agreement": agreement, "run": run, "version": version}
        plain["nodes"] = list(nodes.items())
        write_whole(self.folder / _FILE, json.dumps(plain).encode(), is_private=True)
        for old in self.folder.glob("model-*.safetensors"):
            if old.name != f"model-{version}.safetensors":
                old.unlink(missing_ok=True)

    def model(self, version: int) -> Model:
        """Return the stored model of a version.

        Raises:
            RunDirectoryError: The file is missing or damaged.
        """
        model = self._state(self.folder / f"model-{version}.safetensors")
        if not isinstance(model, Model):
            raise RunDirectoryError(f"{self.folder}: no model of version {version}; start again with an empty folder")
        return model

    def save(self, client: int, contact: Contact) -> None:
        """Write the links to a node."""
        write_whole(self._path(client), write_state(contact, self.schema), is_private=True)

    def contact(self, client: int) -> Contact | None:
        """Return the links to a node; None if they are not stored, or damaged, so that the node is a new one."""
        contact = self._state(self._path(client))
        return contact if isinstance(contact, Contact) else None

    def finish(self) -> None:
        """Remove the files: the next run starts anew."""
        for path in (
            self.folder / _FILE,
            *self.folder.glob("model-*.safetensors"),
            *self.folder.glob("node-*.safetensors"),
        ):
            path.unlink(missing_ok=True)

    def _path(self, client: int) -> Path:
        return self.folder / f"node-{client:07d}.safetensors"

    def _state(self, path: Path) -> Any:
        try:
            return map_state(path, self.schema) if path.exists() else None
        except RunDirectoryError:
            return None
