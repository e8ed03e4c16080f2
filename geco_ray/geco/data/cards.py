"""Data cards of the four GECO tasks and of the demo tasks: source, licence, intended use, misuse. As in docs/data.md.

GECOBench (Frontiers in AI 2025, doi 10.3389/frai.2025.1694388).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from geco_ray.errors import unknown_name
from geco_ray.geco.data.dataset import DEMO_TASKS
from geco_ray.geco.data.sources import COMMIT, GECO_TASKS, REPOSITORY, SHA256, file_url
from geco_ray.geco.rows import LABELS
from geco_ray.geco.task import SPLITS

SOURCE = (
    "plot summaries of popular books in the English Wikipedia, collected in 2022, chosen and labelled by hand by the "
    "authors of GECOBench, names replaced by pronouns in 2024"
)
LICENCE = "the released files are under BSD-3-Clause (QAI Labs, 2024); the text comes from Wikipedia (CC BY-SA)"
MISUSE = (
    "Not a test of whether a model is biased against a gender",
    "Not a resource on gender",
    "Not training data for a classifier of persons or names by gender",
    "Not a public secret",
)
_REWRITTEN = {
    "all": "every gendered word of every person",
    "subj": "only the words of the grammatical subject",
}
_OWN: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "binary_gender_all": (
            "D_A, binary",
            "Compare attribution methods where every gendered word is a legitimate cue",
            "One source sentence without truth (train), a marked blank word (test, source sentence 1536)",
            "take a high score here as a sign that a method works on models with less obvious cues",
        ),
        "binary_gender_subj": (
            "D_S, binary",
            "The same, where the words of other persons are distractors of the same kind",
            "Eleven source sentences without truth in train, one in test, and as many texts under two labels",
            "compare its scores with D_A as they stand: chance is .090 here and .169 there",
        ),
        "non_binary_gender_all": (
            "D_A, non-binary",
            "As `binary_gender_all` with a third class, neutral forms",
            "The neutral form was made by rule: agreement words are truth in all three forms",
            "use the neutral sentences as examples of good or usual gender-neutral language",
        ),
        "non_binary_gender_subj": (
            "D_S, non-binary",
            "As `binary_gender_subj` with a third class",
            "Four repaired rows, eleven source sentences without truth, the least even classes (.30 neutral)",
            "report a mean without saying how the rows without truth were counted",
        ),
    }
)
"""Name in the paper, intended use, defects that matter, what not to do."""


def task_card(name: str) -> dict[str, object]:
    """The card of a GECO or demo task as plain values, ready for JSON.

    Raises:
        UserError: another task; a folder of the user's own has no card.
    """
    if name in DEMO_TASKS:
        return _demo_card(name)
    if name not in GECO_TASKS:
        raise unknown_name("data card", name, (*GECO_TASKS, *DEMO_TASKS))
    paper, use, defects, never = _OWN[name]
    return {
        "name": name,
        "paper": paper,
        "classes": list(LABELS if name.startswith("non_") else LABELS[:2]),
        "rewritten": _REWRITTEN[name.rpartition("_")[2]],
        "language": "English",
        "source": SOURCE,
        "licence": LICENCE,
        "release": f"github.com/{REPOSITORY} at {COMMIT}",
        "files": {split: {"url": file_url(name, split), "sha256": SHA256[name, split]} for split in SPLITS},
        "intended use": use,
        "defects that matter": defects,
        "do not": never,
        "misuse": list(MISUSE),
    }


def _demo_card(name: str) -> dict[str, object]:
    from geco_ray.geco.corpus.demo import demo_labelling

    head = demo_labelling().head
    return {
        "name": name,
        "classes": list(LABELS if "non_binary" in name else LABELS[:2]),
        "rewritten": _REWRITTEN[name.rpartition("_")[2]],
        **{key: head[key] for key in ("language", "source", "licence")},
        "intended use": "Try the pipeline offline",
        "do not": "take its numbers for those of GECO",
    }
