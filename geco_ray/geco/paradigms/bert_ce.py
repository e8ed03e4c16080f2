"""BERT-CE: embeddings redrawn and trained with a new head; attention layers and pooler stay as pretrained."""

from __future__ import annotations

from pydantic import Field

from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.paradigms.bert import BertOptions, BertParadigm
from geco_ray.registry import Profile


class BertCEOptions(BertOptions):
    """Defaults of the paper."""

    learning_rate: float = Field(1e-4, gt=0)


@PARADIGMS.register(
    "bert_ce", title="BERT-CE", options=BertCEOptions, profile=Profile(order=4, colour="#007A5A", marker="^", aims=True)
)
class BertCE(BertParadigm):
    """See the module."""

    trained = ("embeddings", "head")
    redrawn = ("embeddings", "head")
