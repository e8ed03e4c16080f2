"""BERT-CEfAf: everything is fine-tuned, embeddings, attention layers and pooler, with a new head."""

from __future__ import annotations

from pydantic import Field

from geco_ray.geco.model_parts import ALL
from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.paradigms.bert import BertOptions, BertParadigm
from geco_ray.registry import Profile


class BertCEfAfOptions(BertOptions):
    """Defaults of the paper."""

    learning_rate: float = Field(5e-6, gt=0)


@PARADIGMS.register(
    "bert_cefaf",
    title="BERT-CEfAf",
    options=BertCEfAfOptions,
    profile=Profile(order=5, colour="#A8407F", marker="D", aims=True),
)
class BertCEfAf(BertParadigm):
    """See the module."""

    trained = (ALL,)
    redrawn = ("head",)
