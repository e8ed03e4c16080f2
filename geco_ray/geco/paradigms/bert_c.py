"""BERT-C: a pretrained encoder, frozen with its pooler, under a new linear head (GECOBench, classifiers)."""

from __future__ import annotations

from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.geco.paradigms.bert import BertOptions, BertParadigm


class BertCOptions(BertOptions):
    """Defaults of the paper."""


@PARADIGMS.register("bert_c", title="BERT-C", options=BertCOptions)
class BertC(BertParadigm):
    """See the module. The pooler's outputs are computed once for all epochs and seeds: the encoder never changes."""

    trained = ("head",)
    redrawn = ("head",)
