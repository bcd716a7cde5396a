"""A pretrained model of Hugging Face's `transformers`, from a folder or the local cache; nothing is ever fetched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.networks.reading import window

__all__ = ["HuggingFace", "HuggingFaceModule", "folder_of"]

_KINDS = {"tokens": "AutoModelForCausalLM", "example": "AutoModelForSequenceClassification"}


@networks.register("hugging_face")
@dataclass(frozen=True)
class HuggingFace(Network):
    """A model that `transformers` knows, with the weights in its folder (extra `adapters`).

    Weights are read from safetensors alone, code from the installed package alone, and nothing is downloaded: a name is
    looked up in the local cache.

    Args:
        path: A folder with config.json and safetensors, or the name of a model in the local cache.
        output: `tokens` is a language model (`text` with `target: sequence`), `example` a classifier of whole texts.
        new_head: Whether layers that the folder lacks may be drawn anew from the seed, as a classifier's last layer is.

    Raises:
        ConfigError: The package is missing; the folder is; its weights are pickles, of another model or version; the
            model knows fewer tokens than the data have, or takes shorter texts.

    Example: `network: {name: lora, of: {name: hugging_face, path: models/tiny}, targets: [q_proj, v_proj]}`.
    """

    path: str
    output: Literal["tokens", "example"] = "tokens"
    new_head: bool = False

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """The model for windows of this length."""
        folder = folder_of(self.path)
        settings = _settings(folder)
        length = window(shape, "hugging_face")
        most = settings.get("max_position_embeddings") or settings.get("n_positions")
        if isinstance(most, int) and most < length:
            raise ConfigError(
                f"task.length is {length} tokens, but {self.path} takes at most {most}; set task.length: {most}"
            )
        vocabulary = settings.get("vocab_size")
        if self.output == "tokens" and isinstance(vocabulary, int) and vocabulary < num_classes:
            raise ConfigError(
                f"network.path: {self.path} knows {vocabulary} tokens, but the data have {num_classes}; take a model "
                "and token numbers that belong together"
            )
        return HuggingFaceModule(self._load(folder, settings, num_classes))

    def _load(self, folder: Path, settings: dict[str, Any], num_classes: int) -> Any:
        library = _library()
        more = {"num_labels": num_classes} if self.output == "example" else {}
        try:
            model, found = getattr(library, _KINDS[self.output]).from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float32,
                output_loading_info=True, **more,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
            made = settings.get("transformers_version", "an unknown version")
            raise ConfigError(
                f"network.path: {folder} cannot be loaded ({str(error).splitlines()[0]}); it was written by "
                f"transformers {made}, and {library.__version__} is installed: install that version, or another folder"
            ) from None
        lacking = [*found["missing_keys"], *(one[0] for one in found["mismatched_keys"])]
        if lacking and not self.new_head:
            raise ConfigError(
                f"network.path: {folder} lacks {sorted(lacking)[0]} and {len(lacking) - 1} other tensors of this "
                "model; it is of another model or version. Name another folder, or accept new ones with "
                "network.new_head: true"
            )
        return model


class HuggingFaceModule(nn.Module):
    """Token numbers in, scores out."""

    def __init__(self, model: Any) -> None:
        """The model's own layers are below `model`."""
        super().__init__()
        self.model = model
        self.padding = model.config.pad_token_id
        output = model.get_output_embeddings()
        wanted = output if output is not None else getattr(model, "score", getattr(model, "classifier", None))
        self.head_layers = [f"model.{name}" for name, layer in model.named_modules() if layer is wanted and name]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores per token, or per example; padding is masked where the model says which token it is."""
        mask = None if self.padding is None else (tokens != self.padding).long()
        scores: torch.Tensor = self.model(input_ids=tokens, attention_mask=mask, use_cache=False).logits
        return scores.float()


def _or_fetch(path: str) -> str:
    """How to get a model by its name, `team/model`; a path is no such name."""
    is_name = path.count("/") <= 1 and not path.startswith(("/", ".", "~"))
    return f", or fetch the model first: hf download {path}" if is_name else ""


def folder_of(path: str) -> Path:
    """The folder of a model: as it is named, or that of a name in the local cache.

    Raises:
        ConfigError: There is none, or it holds no safetensors.
    """
    folder = Path(path)
    if not folder.is_dir():
        _library()
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        try:
            folder = Path(snapshot_download(path, local_files_only=True))
        except (OSError, ValueError, HfHubHTTPError, HFValidationError):
            raise ConfigError(
                f"network.path: {path} is neither a folder nor in the local cache of Hugging Face, and nothing is "
                f"downloaded in a run; name a folder{_or_fetch(path)}"
            ) from None
    if not any(folder.glob("*.safetensors")):
        pickles = sorted(file.name for pattern in ("*.bin", "*.pt", "*.pth", "*.pkl") for file in folder.glob(pattern))
        told = f"holds pickled weights ({pickles[0]}), which run code when they are read" if pickles else "has none"
        raise ConfigError(
            f"network.path: weights are read from safetensors alone, but {folder} {told}; save it with "
            "save_pretrained(..., safe_serialization=True) where you trust it"
        )
    return folder


def _settings(folder: Path) -> dict[str, Any]:
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"network.path: {folder / 'config.json'} cannot be read ({error}); name another") from None
    if not isinstance(settings, dict) or "auto_map" in settings:
        raise ConfigError(
            f"network.path: {folder} brings code of its own (auto_map in config.json), which is never run; take a "
            "model that the installed transformers knows"
        )
    return settings


def _library() -> Any:
    try:
        import transformers
    except ImportError:
        raise ConfigError(
            "network.name is hugging_face, but the package transformers is not installed; pip install "
            "'fedreuse[adapters]'"
        ) from None
    return transformers
