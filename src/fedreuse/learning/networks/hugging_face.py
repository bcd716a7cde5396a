"""A pretrained model of Hugging Face's `transformers`, from a folder or the local cache; nothing is downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.network import Network, networks
from fedreuse.learning.networks.readout import window

__all__ = ["HuggingFace", "HuggingFaceModule", "folder_of"]

_KINDS = {"tokens": "AutoModelForCausalLM", "example": "AutoModelForSequenceClassification"}


@networks.register("hugging_face")
@dataclass(frozen=True)
class HuggingFace(Network):
    """A model of the library `transformers`, with the weights in its folder (extra `adapters`).

    Only safetensors are read, only code of the installed package is run, and nothing is downloaded: a name is looked up
    in the local cache.

    Args:
        path: A folder with config.json and safetensors, or the name of a model in the local cache.
        output: `tokens` for a language model (`text` with `target: sequence`), `example` for a classifier of texts.
        new_head: Whether layers that the folder lacks, such as a classifier's last layer, are initialised from the
            seed; else they are an error.

    Raises:
        ConfigError: The package or the folder is missing; weights are pickles, or of another model or version; the
            model has fewer tokens than the data, or takes shorter texts.

    Example: `network: {name: lora, of: {name: hugging_face, path: models/tiny}, targets: [q_proj, v_proj]}`.
    """

    path: str
    output: Literal["tokens", "example"] = "tokens"
    new_head: bool = False

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Load the model for windows of this length."""
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
                f"network.path: {self.path} has {vocabulary} tokens, but the data have {num_classes}; choose a "
                "model and a tokenizer that belong together"
            )
        return HuggingFaceModule(self._load(folder, settings, num_classes))

    def _load(self, folder: Path, settings: dict[str, Any], num_classes: int) -> Any:
        library = _library()
        more = {"num_labels": num_classes} if self.output == "example" else {}
        try:
            model, info = getattr(library, _KINDS[self.output]).from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float32,
                output_loading_info=True, **more,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
            version = settings.get("transformers_version", "an unknown version")
            raise ConfigError(
                f"network.path: {folder} cannot be loaded ({str(error).splitlines()[0]}); it was written by "
                f"transformers {version}, and {library.__version__} is installed: install that version, or name "
                "another folder"
            ) from None
        lacking = [*info["missing_keys"], *(key[0] for key in info["mismatched_keys"])]
        if lacking and not self.new_head:
            raise ConfigError(
                f"network.path: {folder} lacks {sorted(lacking)[0]} and {len(lacking) - 1} other tensors of this "
                "model; it is of another model or version. Name another folder, or initialise them with "
                "network.new_head: true"
            )
        return model


class HuggingFaceModule(nn.Module):
    """Module with token numbers as input and scores as output."""

    def __init__(self, model: Any) -> None:
        """Keep the layers of the library's model below `model`."""
        super().__init__()
        self.model = model
        self.padding = model.config.pad_token_id
        head = model.get_output_embeddings()
        if head is None:  # a classifier; the library names its last layer in one of two ways
            head = getattr(model, "score", getattr(model, "classifier", None))
        self.head_layers = [f"model.{name}" for name, layer in model.named_modules() if layer is head and name]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores per token or per example; padding is masked if the model names its padding token."""
        mask = None if self.padding is None else (tokens != self.padding).long()
        scores: torch.Tensor = self.model(input_ids=tokens, attention_mask=mask, use_cache=False).logits
        return scores.float()


def folder_of(path: str) -> Path:
    """Return the folder of a model: the path itself, or the folder of that name in the local cache.

    Raises:
        ConfigError: There is no such folder, or it holds no safetensors.
    """
    folder = Path(path)
    if not folder.is_dir():
        _library()
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        try:
            folder = Path(snapshot_download(path, local_files_only=True))
        except (OSError, ValueError, HfHubHTTPError, HFValidationError):
            is_name = path.count("/") <= 1 and not path.startswith(("/", ".", "~"))  # as in team/model
            fetch = f", or fetch the model first: hf download {path}" if is_name else ""
            raise ConfigError(
                f"network.path: {path} is neither a folder nor in the local cache of Hugging Face, and nothing is "
                f"downloaded in a run; name a folder{fetch}"
            ) from None
    if not any(folder.glob("*.safetensors")):
        pickles = sorted(file.name for pattern in ("*.bin", "*.pt", "*.pth", "*.pkl") for file in folder.glob(pattern))
        reason = f"holds pickled weights ({pickles[0]}), which run code when they are read" if pickles else "has none"
        raise ConfigError(
            f"network.path: weights are read from safetensors only, but {folder} {reason}; save it with "
            "save_pretrained(..., safe_serialization=True) where you trust it"
        )
    return folder


def _settings(folder: Path) -> dict[str, Any]:
    try:
        settings = read_json(folder / "config.json")
    except (OSError, ValueError) as error:
        raise ConfigError(f"network.path: {folder / 'config.json'} cannot be read ({error}); name another") from None
    if not isinstance(settings, dict) or "auto_map" in settings:
        raise ConfigError(
            f"network.path: {folder} brings its own code (auto_map in config.json), which is never run; choose "
            "a model that the installed transformers includes"
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
