"""BERT-CEf: pretrained embeddings, fine-tuned with a new head; attention layers and pooler stay as pretrained."""

from __future__ import annotations

from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.paradigms.bert import BertOptions, BertParadigm
from geco_ray.geco.protocol import Protocol
from geco_ray.registry import Profile


class BertCEfOptions(BertOptions):
    """Defaults of the paper."""


@PARADIGMS.register(
    "bert_cef",
    title="BERT-CEf",
    options=BertCEfOptions,
    profile=Profile(order=3, colour="#9A6A00", marker="s", aims=True),
)
class BertCEf(BertParadigm):
    """See the module. In the paper's protocol the head stays as drawn, as in the published runs."""

    trained = ("embeddings", "head")
    redrawn = ("head",)

    @classmethod
    def trained_under(cls, protocol: Protocol) -> tuple[str, ...]:
        return cls.trained if protocol.cef_head == "trained" else ("embeddings",)
