"""A tiny model that the test makes, loaded from its folder or the cache; folders that are refused; no socket opens."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.hugging_face import HuggingFace, folder_of
from fedreuse.learning.networks.network import networks

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # transformers takes seconds to import
TOKENS = torch.tensor([[3, 5, 4, 0]])


@pytest.fixture(autouse=True)
def nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of two layers with tied embeddings."""
    transformers = pytest.importorskip("transformers")
    torch.default_generator.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=20, hidden_size=8, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=16, tie_word_embeddings=True, pad_token_id=0,
    )  # fmt: skip
    place = tmp_path_factory.mktemp("models") / "tiny"
    transformers.LlamaForCausalLM(config).save_pretrained(place)
    return place


def built(path: Path | str, **settings: Any) -> nn.Module:
    return HuggingFace(str(path), **settings).build((4,), 20)


def test_the_same_scores_as_the_library(folder: Path) -> None:
    module = built(folder)
    theirs = pytest.importorskip("transformers").LlamaForCausalLM.from_pretrained(folder)
    assert module.eval()(TOKENS).equal(theirs(TOKENS, attention_mask=(TOKENS != 0).long()).logits)
    assert FlatNetwork(module).schema.head() == ("model.model.embed_tokens.weight",)  # tied


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_adapters_alone_are_the_model(folder: Path, precision: str) -> None:
    spec = {"name": "lora", "of": {"name": "hugging_face", "path": str(folder)}, "rank": 2,
            "targets": ["q_proj", "v_proj"], "frozen": precision}  # fmt: skip
    network = FlatNetwork(networks.parse(spec, "network").build((4,), 20))
    assert network.schema.weights.size == 2 * 2 * 2 * (8 + 8)  # layers, projections, rank, sides
    assert network.schema.buffers.size == 0
    assert all("layers.1" in name and "v_proj" in name for name in network.schema.head())
    network.module(TOKENS).square().sum().backward()
    assert float(network.gradient.abs().sum()) > 0


def test_a_classifier_draws_its_last_layer(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"lacks score\.weight and 0 other tensors .* network\.new_head: true"):
        built(folder, output="example")
    assert built(folder, output="example", new_head=True)(TOKENS).shape == (1, 20)


def test_a_name_is_looked_up_in_the_cache(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    snapshot = tmp_path / "models--team--tiny" / "snapshots" / ("a" * 40)
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(folder)
    (tmp_path / "models--team--tiny" / "refs").mkdir()
    (tmp_path / "models--team--tiny" / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    assert folder_of("team/tiny").resolve() == folder.resolve()
    with pytest.raises(
        ConfigError,
        match=r"team/other is neither a folder nor in the local cache .* nothing is download.*hf download team",
    ):
        folder_of("team/other")
    with pytest.raises(ConfigError, match=r"nothing is downloaded in a run; name a folder$"):
        folder_of(str(tmp_path / "absent"))


def test_folders_that_are_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(name: str, **changes: Any) -> Path:
        place = tmp_path / name
        place.mkdir()
        for file in folder.iterdir():
            (place / file.name).write_bytes(file.read_bytes())
        settings = json.loads((place / "config.json").read_text()) | changes
        (place / "config.json").write_text(json.dumps(settings))
        return place

    with pytest.raises(ConfigError, match=r"brings its own code \(auto_map in config\.json\), which is never run"):
        built(copied("code", auto_map={"AutoModelForCausalLM": "evil.Model"}))
    with pytest.raises(ConfigError, match=r"lacks .* other tensors of this model"):
        built(copied("deeper", num_hidden_layers=3))
    with pytest.raises(ConfigError, match=r"cannot be loaded .*written by transformers 99\.0, and .* is installed"):
        built(copied("unknown", model_type="of_tomorrow", transformers_version="99.0"))
    pickled = copied("pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(
        ConfigError, match=r"read from safetensors only, but .* holds pickled weights \(pytorch_model\.bin"
    ):
        built(pickled)
    bare = copied("bare")
    (bare / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"config\.json cannot be read"):
        built(bare)
    with pytest.raises(ConfigError, match=r"task\.length is 17 tokens, but .* takes at most 16; set task\.length: 16"):
        HuggingFace(str(folder)).build((17,), 20)
    with pytest.raises(ConfigError, match=r"has 20 tokens, but the data have 98"):
        HuggingFace(str(folder)).build((4,), 98)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        ConfigError, match=r"the package transformers is not installed; pip install 'fedreuse\[adapters\]'"
    ):
        built(folder)
