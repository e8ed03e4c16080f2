"""An encoder's folder: what it has to hold, what it must not hold, and what identifies it. No torch."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError
from geco_ray.files.checksums import sha256_of
from geco_ray.geco.backbones.base import BACKBONES, Backbone

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
WEIGHT_FILE = "model.safetensors"
SPECIAL_TOKENS = ("cls_token", "sep_token", "pad_token", "mask_token", "unk_token")


def check_folder(name: str, folder: Path) -> Path:
    """The weight file, after checking that the folder has all that is needed, and nothing that runs code."""
    weights = folder / WEIGHT_FILE
    if not weights.is_file() and (pickled := sorted(folder.glob("*.bin"))):
        raise UserError(
            f"the weights of encoder {name!r} are pickled, and a pickle can run anything",
            where=str(folder),
            found=pickled[0].name,
            expected=WEIGHT_FILE,
            remedy="Load the model where you trust it and save it with save_pretrained, which writes safetensors",
        )
    tokenizer = any((folder / file).is_file() for file in TOKENIZER_FILES[:2])
    if not weights.is_file() or not tokenizer or not (folder / "config.json").is_file():
        raise UserError(
            f"the folder of encoder {name!r} is not complete",
            where=str(folder),
            expected=f"config.json, tokenizer.json or vocab.txt, and {WEIGHT_FILE}",
        )
    for file in ("config.json", "tokenizer_config.json"):
        if "auto_map" in read_json(folder / file):
            raise UserError(
                f"encoder {name!r} brings code of its own, which is not run",
                where=str(folder / file),
                found="the key 'auto_map'",
                expected="a model that the library knows by its model_type",
            )
    return weights


def has_masked_lm(name: str, folder: Path) -> bool:
    """Whether the weight file has the head that fills in a word, by the names in its header alone.

    Raises:
        UserError: the file is no safetensors file.
    """
    kind = read_json(folder / "config.json").get("model_type")
    family = BACKBONES.get(str(kind)).target if kind in BACKBONES.names() else Backbone
    try:
        with (folder / WEIGHT_FILE).open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            names = json.loads(file.read(min(size, 2**27)))
    except ValueError:
        raise UserError(f"the weights of encoder {name!r} cannot be read", where=str(folder / WEIGHT_FILE)) from None
    return bool(family.masked_class) and any(key.startswith(family.masked_key) for key in names)


@lru_cache(maxsize=16)
def files_fingerprint(stamps: tuple[tuple[str, int, int], ...]) -> str:
    """SHA-256 over the files' hashes; remembered for as long as their sizes and times stay the same."""
    hashes = " ".join(sha256_of(Path(path)) for path, _, _ in stamps)
    return hashlib.sha256(hashes.encode()).hexdigest()


def tokenizer_fingerprint(folder: Path) -> str:
    """What decides the pieces: the tokenizer without the padding, truncation and template, which are not used."""
    named = read_json(folder / "tokenizer_config.json")
    special = [_token_text(named.get(token)) for token in SPECIAL_TOKENS]
    if (folder / "tokenizer.json").is_file():
        whole = read_json(folder / "tokenizer.json")
        kept: list[Any] = [whole.get(key) for key in ("normalizer", "pre_tokenizer", "model", "added_tokens")]
    else:
        kept = [
            (folder / "vocab.txt").read_text(encoding="utf-8"),
            named.get("do_lower_case"),
            named.get("strip_accents"),
        ]
    content = [kept, special, *_layout(read_json(folder / "config.json").get("model_type"), named)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _layout(model_type: object, named: dict[str, Any]) -> list[object]:
    """What the family does to a sentence, where it is not BERT's [CLS], words, [SEP]."""
    if model_type not in BACKBONES.names():
        return []
    found, usual = (
        [list(kind.prefix), list(kind.suffix), kind.class_position, kind.space_before_words]
        for kind in (BACKBONES.get(str(model_type)).target, Backbone)
    )
    return [] if found == usual else [found, _token_text(named.get("eos_token"))]


def read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise UserError("not valid JSON", where=str(path)) from None
    if not isinstance(content, dict):
        raise UserError("not a JSON object", where=str(path))
    return content


def _token_text(token: object) -> object:
    return token.get("content") if isinstance(token, dict) else token
