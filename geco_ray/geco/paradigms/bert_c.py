"""BERT-C: a pretrained encoder, frozen with its pooler, under a new linear head (GECOBench, classifiers)."""

from __future__ import annotations

from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.paradigms.bert import BertOptions, BertParadigm
from geco_ray.registry import Profile


class BertCOptions(BertOptions):
    """Defaults of the paper."""


@PARADIGMS.register(
    "bert_c", title="BERT-C", options=BertCOptions, profile=Profile(order=2, colour="#0072B2", marker="o", aims=True)
)
class BertC(BertParadigm):
    """See the module. The pooler's outputs are computed once for all epochs and seeds: the encoder never changes."""

    trained = ("head",)
    redrawn = ("head",)
