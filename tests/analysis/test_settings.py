"""What a table says of the run behind it: encoders, samples and options unlike the defaults."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd

from analysis.cfe.labels import with_labels
from analysis.cfe.settings import settings_sentence
from analysis.geco.labels import with_labels as with_geco_labels
from analysis.geco.settings import settings_sentence as geco_sentence
from analysis.views import View, to_markdown
from geco_ray.cfe.tuning import tuned


def geco_rows(*rows: tuple[str, str, str, dict[str, Any]]) -> pd.DataFrame:
    columns = ["encoder", "paradigm", "method", "settings"]
    frame = pd.DataFrame([(*row[:3], json.dumps(row[3])) for row in rows], columns=columns)
    return frame.assign(dataset="demo_binary_all", protocol="corrected")


def cfe_rows(*rows: tuple[str, str, dict[str, Any]]) -> pd.DataFrame:
    values = [(name, protocol, json.dumps({"method_options": options})) for name, protocol, options in rows]
    frame = pd.DataFrame(values, columns=["method", "protocol", "settings"])
    return frame.assign(dataset="breast_cancer", seeding="paper")


def test_options_unlike_the_registered_defaults_are_named() -> None:
    ola = {"epochs": 2, "batch_size": 64, "learning_rate": 0.01}
    rows = geco_rows(
        ("tokenizer 1a2b", "ola_cea", "integrated_gradients",
         {"paradigm_options": ola, "method_options": {"n_steps": 10}, "sentences": 50}),
        ("minilm", "bert_c", "integrated_gradients",
         {"paradigm_options": {"epochs": 20}, "method_options": {"n_steps": 5}, "sentences": 50}),
        ("minilm", "bert_c", "saliency",
         {"paradigm_options": {"epochs": 20}, "method_options": {}, "sentences": 50}),
    )  # fmt: skip
    assert geco_sentence(with_geco_labels(rows)) == (
        "Encoders: minilm (bert_c), tokenizer 1a2b (ola_cea). A tokenizer is named by the first digits of its hash; "
        "the model has no pretrained encoder. Options unlike the defaults: ola_cea epochs=2; "
        "Integrated Gradients n_steps=5 or 10. Explained: a sample of 50 source sentences."
    ).replace("bert_c", "BERT-C").replace("ola_cea", "OLA-CEA")


def test_a_standard_run_says_so_and_an_unknown_method_shows_all_options() -> None:
    usual = {"paradigm_options": {"epochs": 20}, "method_options": {}, "sentences": None}
    assert geco_sentence(with_geco_labels(geco_rows(("minilm", "bert_c", "saliency", usual)))) == (
        "Encoder: minilm. All options have their default values."
    )
    foreign = {"method_options": {"depth": 3}}
    assert "their_method depth=3" in geco_sentence(
        with_geco_labels(geco_rows(("minilm", "bert_c", "their_method", foreign)))
    )


def test_frozen_tuning_is_a_default_and_no_label() -> None:
    values = {protocol: tuned("wachter", protocol, "breast_cancer") for protocol in ("paper", "corrected")}
    assert values["paper"]["trade_off"] != values["corrected"]["trade_off"]
    rows = cfe_rows(*(("wachter", protocol, found) for protocol, found in values.items()))
    assert settings_sentence(with_labels(rows)) == "All options have their default values."
    assert with_labels(rows)["method_label"].tolist() == ["Wachter", "Wachter"]
    odd = cfe_rows(("wachter", "paper", values["paper"] | {"trade_off": 7.0}), ("rbr", "paper", {"samples": 9}))
    assert settings_sentence(with_labels(odd)) == "Options unlike the defaults: Wachter trade_off=7.0; RBR samples=9."


def test_variants_within_one_protocol_are_still_told_apart() -> None:
    rows = cfe_rows(("rbr", "paper", {"samples": 9}), ("rbr", "paper", {"samples": 200}))
    assert with_labels(rows)["method_label"].tolist() == ["RBR [samples=9]", "RBR [samples=200]"]


def test_the_line_is_part_of_the_page() -> None:
    assert "<sub>Encoder: a&lt;b.</sub>" in to_markdown(View("k", "t", ("Method",), (("x",),), setup="Encoder: a<b."))


def test_looking_up_defaults_imports_no_torch(assert_imports_nothing: Callable[..., str]) -> None:
    code = (
        "from analysis.cfe.settings import tuned_defaults; d = tuned_defaults('paper', 'diabetes', 'paper', 'wachter');"
        "assert d['trade_off'] is not None"
    )
    assert_imports_nothing(code, ["torch", "ray", "sklearn"])
