"""A small table with a trained network, and a small corpus with an encoder: enough to try a component in seconds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geco_ray.cfe.base_model import BaseModel, train_base
from geco_ray.cfe.methods.base import GenerationTask
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.geco.rows import Row
from geco_ray.geco.task import Task

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource

FloatArray = npt.NDArray[np.float64]


def toy_rows(seed: int, n: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Two overlapping clouds, float64 (n, 4), and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    centres = np.array([[-0.6, -0.4, 0.0, -0.5], [0.6, 0.4, 0.0, 0.5]])
    return rng.standard_normal((n, 4)) + centres[y], y


@dataclass(frozen=True, eq=False)
class ToyTable:
    """A base model, its pool, the task of a method, and rows that the model calls adverse, float64 (k, 4)."""

    base: BaseModel
    pool: Pool
    task: GenerationTask
    factuals: FloatArray


@cache
def _toy_base() -> tuple[BaseModel, Pool]:
    (x, y), (update, update_y), (val, val_y) = toy_rows(7, 120), toy_rows(8, 40), toy_rows(9, 40)
    pool = Pool(np.concatenate([x, update]).astype(np.float32), y, update_y, val.astype(np.float32), val_y)
    return train_base(BaseKey("toy", 2026, "paper"), pool), pool


def toy_table(protocol: str = "paper") -> ToyTable:
    """The small table; its arrays refuse to be written."""
    base, pool = _toy_base()
    x, _ = toy_rows(11, 300)
    n = len(pool.train_y)
    parts: dict[str, Any] = {
        "train_x": pool.x[:n], "train_y": pool.train_y, "update_x": pool.x[n:], "update_y": pool.update_y,
        "val_x": pool.val_x, "val_y": pool.val_y,
    }  # fmt: skip
    task = GenerationTask(
        dataset="toy", base_seed=2026, protocol=protocol, seeding="paper", model=base.model,
        features=("a", "b", "c", "d"), mean=np.zeros(4), scale=np.ones(4),
        **{name: array.copy() for name, array in parts.items()},
    )  # fmt: skip
    return ToyTable(base, pool, task, x[~base.model.favourable(x)][:40].copy())


_PIECES = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "he", "she", "they", "the", "and", "dog", "cat", "house", "sees",
    "likes", "finds", "old", "run", "##ning", ".", "sis", "bro", "##ther", "##ter", "sibling", "female", "male",
    "neutral",
]  # fmt: skip


def toy_task() -> Task:
    """Three classes, told apart by two words; sentences of several lengths, with blank and multi-piece words."""
    rows: list[Row] = []
    for index in range(12):
        noun, verb = ("dog", "cat", "house")[index % 3], ("sees", "likes", "finds")[index // 3 % 3]
        for target, (subject, person) in enumerate((("She", "sister"), ("He", "brother"), ("They", "sibling"))):
            words = [subject, verb, "the", *["old"] * (index % 5), noun, "and", "", person, "running", "."]
            truth = tuple(int(word in (subject, person)) for word in words)
            rows.append(Row(tuple(words), truth, ("female", "male", "neutral")[target], target, index, len(rows) + 1))
    return Task("toy", ("female", "male", "neutral"), tuple(rows[:27]), tuple(rows[27:]), "0" * 64)


def toy_encoder(folder: Path) -> EncoderSource:
    """A random BERT of two layers, written into ``folder``."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertForPreTraining
    from transformers.utils import logging

    from geco_ray.geco.encoders import resolve_encoder

    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(_PIECES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(_PIECES[:5])
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    named = {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    config = BertConfig(
        vocab_size=len(_PIECES), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        initializer_range=0.3,
    )  # fmt: skip
    bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        BertForPreTraining(config).save_pretrained(folder)
    if bar:
        logging.enable_progress_bar()
    return resolve_encoder(str(folder))
