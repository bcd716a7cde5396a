"""A small tokenizer of whole words, saved as people have them."""

from __future__ import annotations

import json
from pathlib import Path

SPECIAL = ["the", "[UNK]", "[CLS]", "[SEP]", "[PAD]"]
WORDS = {word: number for number, word in enumerate([*SPECIAL, "red", "blue", "cow"])}
"""Number 0 is a word like others, and padding is another number, as in many models."""


def save_tokenizer(folder: Path, *more: str) -> Path:
    """A folder with tokenizer.json and the name of the padding token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    known = WORDS | {word: len(WORDS) + place for place, word in enumerate(more)}
    made = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(name, WORDS[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    return folder
