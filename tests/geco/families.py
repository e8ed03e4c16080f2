"""A tiny random encoder of each family, as a folder with weights and a tokenizer; made in the tests, never fetched."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORDS = (
    *("female", "male", "neutral", "person", "Female", "or", ":", "she", "he", "they", "her", "his", "their", "him"),
    *("sees", "likes", "finds", "the", "old", "big", "red", "dog", "cat", "house", "running", "runs", "and"),
    *("sister", "brother", "parent's", "sibling", ".", ","),
)


@dataclass(frozen=True)
class Family:
    """How to build one: names of the library's classes, and the sizes that its configuration calls otherwise.

    ``whole`` is the class whose weights hold the encoder, with pooler and language-modeling head where there are any.
    """

    config: str
    whole: str
    tokenizer: str
    pieces: str = "wordpiece"
    sizes: dict[str, Any] = field(default_factory=dict)


WIDTHS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
NARROW = {**WIDTHS, "embedding_size": 16}
FAMILIES = {
    "bert": Family("BertConfig", "BertForPreTraining", "BertTokenizer", sizes=WIDTHS),
    "roberta": Family(
        "RobertaConfig",
        "RobertaForMaskedLM",
        "RobertaTokenizer",
        "bytes",
        {**WIDTHS, "max_position_embeddings": 514, "type_vocab_size": 1},
    ),
    "distilbert": Family(
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        "DistilBertTokenizer",
        sizes={"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
    "electra": Family(
        "ElectraConfig", "ElectraForMaskedLM", "ElectraTokenizer", sizes={**WIDTHS, "embedding_size": 16}
    ),
    "albert": Family(
        "AlbertConfig", "AlbertForPreTraining", "AlbertTokenizer", "unigram", {**WIDTHS, "embedding_size": 16}
    ),
    "xlnet": Family(
        "XLNetConfig",
        "XLNetLMHeadModel",
        "XLNetTokenizer",
        "unigram_unk_first",
        {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
    ),
    "gpt2": Family(
        "GPT2Config",
        "GPT2LMHeadModel",
        "GPT2Tokenizer",
        "bytes",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128},
    ),
}
SPECIAL = {
    "wordpiece": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "bytes": {
        "cls": "<s>",
        "pad": "<pad>",
        "sep": "</s>",
        "unk": "<unk>",
        "mask": "<mask>",
        "eos": "</s>",
        "bos": "<s>",
    },
    "unigram": {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "unigram_unk_first": {"unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "pad": "<pad>", "mask": "<mask>"},
}


def build_family(name: str, folder: Path) -> Path:
    """Write the encoder of that family into ``folder``, random and wide of zero; torch's global state is untouched."""
    import torch
    import transformers

    family = FAMILIES[name]
    special = SPECIAL[family.pieces] if name != "gpt2" else dict.fromkeys(("unk", "bos", "eos"), "<|endoftext|>")
    tokenizer = _tokenizer(family.pieces, list(dict.fromkeys(special.values())))
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"tokenizer_class": family.tokenizer, **{f"{key}_token": text for key, text in special.items()}}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    ids = {f"{key}_token_id": tokenizer.token_to_id(special[key]) for key in ("pad", "bos", "eos") if key in special}
    config = getattr(transformers, family.config)(
        vocab_size=tokenizer.get_vocab_size(), initializer_range=0.3, **family.sizes, **ids
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        getattr(transformers, family.whole)(config).save_pretrained(folder)
    return folder


def _tokenizer(kind: str, special: list[str]) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    words = list(WORDS)
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special)
    elif kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet)
        words = [f" {word}" for word in words]
    else:
        letters = sorted({letter for word in words for letter in word} | {"▁"})
        pieces = [(text, 0.0) for text in special] + [(f"▁{word}", -2.0) for word in dict.fromkeys(words)]
        pieces += [(letter, -9.0) for letter in letters]
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=special.index("<unk>")))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.add_special_tokens(special)
        return tokenizer
    tokenizer.train_from_iterator(words * 20, trainer)
    tokenizer.add_special_tokens(special)
    return tokenizer
