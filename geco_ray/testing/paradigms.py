"""The rules of a training paradigm."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.geco.paradigms.base import Paradigm, TrainingSetup
from geco_ray.registry import Entry, Options
from geco_ray.testing.faults import Conformance, check_options, other_random_state, random_sentence, random_states
from geco_ray.testing.toys import toy_encoder, toy_task

if TYPE_CHECKING:
    from geco_ray.geco.trained import TrainedClassifier


def check_paradigm(
    entry: Entry[type[Paradigm]], options: Mapping[str, object] | None = None, *, protocol: str = "corrected"
) -> Conformance:
    """Hold a paradigm to its rules on a small corpus and a random encoder of two layers.

    Args:
        entry: of the registry. options: that make it quick. protocol: to train under.
    """
    found = Conformance(entry.name, "paradigm")
    parsed = check_options(found, entry, options)
    if parsed is None:
        return found
    told = "depends_on is neither encoder nor tokenizer; say what of the encoder decides the result"
    depends = getattr(entry.target, "depends_on", None) in ("encoder", "tokenizer")
    if not found.add("depends_on", None if depends else told):
        return found
    with tempfile.TemporaryDirectory() as folder:
        _check_training(found, entry, parsed, _setup(Path(folder), protocol))
    return found


def _setup(folder: Path, protocol: str) -> TrainingSetup:
    import torch

    from geco_ray.geco.encoders import load_tokenizer
    from geco_ray.geco.protocol import resolve_protocol
    from geco_ray.geco.tokens import tokenize_task

    source = toy_encoder(folder)
    tokens = tokenize_task(toy_task(), load_tokenizer(source))
    return TrainingSetup(tokens, source, resolve_protocol(protocol), torch.device("cpu"))


def _check_training(found: Conformance, entry: Entry[type[Paradigm]], options: Options, setup: TrainingSetup) -> None:
    seeds = [0, 1] if entry.target.repeated else [None]
    before = random_states()
    trained = found.attempt("train", lambda: list(entry.target().train(setup, options, seeds)))
    if trained is None:
        return
    told = f"{len(seeds)} seeds gave {len(trained)} classifiers; yield one for each, in order"
    if not found.add("one classifier per seed", None if [one.seed for one in trained] == seeds else told):
        return
    found.add("global random state", random_sentence(before, random_states()))
    told = f"the classifier says it is of {trained[0].paradigm!r}; give the registered name, {entry.name!r}"
    found.add("name", None if trained[0].paradigm == entry.name else told)
    _check_again(found, entry, options, setup, trained)
    _check_rebuilt(found, setup, trained[0])


def _check_again(
    found: Conformance, entry: Entry[type[Paradigm]], options: Options, setup: TrainingSetup, trained: Any
) -> None:
    def again() -> Any:
        with other_random_state():
            (one,) = entry.target().train(setup, options, [trained[-1].seed])
            return one

    second = found.attempt("determinism", again)
    if second is not None:
        told = (
            "the same seed gave other weights; draw from geco_ray.seeds.torch_stream, and let no seed decide another's"
        )
        found.add("determinism", None if second.to_bytes() == trained[-1].to_bytes() else told)


def _check_rebuilt(found: Conformance, setup: TrainingSetup, trained: TrainedClassifier) -> None:
    import torch

    from geco_ray.geco.training import load_trained

    rebuilt = found.attempt("rebuild", lambda: load_trained(trained.to_bytes(), setup.source, setup.device))
    if rebuilt is None:
        return
    ids = torch.from_numpy(setup.tokens.laid_out(trained.module.layout).test[0].ids)[None]
    with torch.no_grad():
        # Tensors at other addresses may go through other kernels, which round otherwise.
        same = torch.allclose(trained.module(ids, None), rebuilt.module(ids, None), atol=1e-5)
    told = "the rebuilt classifier gives other logits; trained_state must hold all that training changed"
    found.add("rebuild", None if same else told)
