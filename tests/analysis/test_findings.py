"""Sentences under the tables, rankings across families, and the HTML pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from analysis.cfe import frames as cfe_frames
from analysis.cfe.comparisons import comparison_table as cfe_comparisons
from analysis.cfe.findings import family_findings
from analysis.cfe.ranking import agreement, rank_table, ranks
from analysis.cfe.tables import table_6
from analysis.cfe.views import table_6_views
from analysis.findings import listed
from analysis.geco import frames as geco_frames
from analysis.geco.findings import references
from analysis.geco.sentences import examples
from analysis.geco.statistics.comparisons import comparison_table as geco_comparisons
from analysis.geco.styles import METHODS as METHOD_NAMES
from analysis.geco.styles import TITLES
from analysis.geco.tables import accuracy_table, metric_table
from analysis.geco.views import mass_views
from analysis.report import write_report


def test_kendalls_w_by_hand() -> None:
    same = pd.DataFrame({"f": [0.9, 0.5, 0.1], "g": [0.8, 0.7, 0.6]}, index=["a", "b", "c"])
    found = agreement(same)
    assert found is not None
    assert (found.w, found.reversed_pairs, found.pairs) == (pytest.approx(1.0), 0, 3)
    assert found.mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}
    # Ranks 1 2 3 and 3 1 2: sums 4 3 5, S = 2, W = 12 * 2 / (4 * 24)
    mixed = agreement(same.assign(g=[0.1, 0.9, 0.5]))
    assert mixed is not None
    assert (mixed.w, mixed.reversed_pairs) == (pytest.approx(0.25), 2)


def test_kendalls_w_corrects_for_ties() -> None:
    # Ranks 1.5 1.5 3 twice: S = 6, correction 2 * (8 - 2), W = 12 * 6 / (4 * 24 - 2 * 12)
    tied = pd.DataFrame({"f": [0.9, 0.9, 0.1], "g": [0.8, 0.8, 0.6]}, index=["a", "b", "c"])
    found = agreement(tied)
    assert found is not None
    assert found.w == pytest.approx(1.0)
    assert ranks(tied)["f"].tolist() == [1.5, 1.5, 3.0]
    level = agreement(pd.DataFrame({"f": [1.0, 1.0], "g": [1.0, 1.0]}))
    assert level is not None
    assert level.w is None
    assert "no order to compare" in family_findings(level)[0]


def test_agreement_leaves_out_gaps_and_says_when_nothing_is_left() -> None:
    frame = pd.DataFrame({"f": [0.9, None, 0.1], "g": [0.8, 0.7, 0.6], "h": [None] * 3}, index=["a", "b", "c"])
    found = agreement(frame.astype("float64"))
    assert found is not None
    assert (found.methods, found.families) == (2, 2)
    assert agreement(frame[["f"]].astype("float64")) is None
    assert "needed to compare" in family_findings(None)[0]


def test_ranks_within_families_stand_beside_their_agreement() -> None:
    rows = [("diabetes", "seed", "a", 0.9), ("diabetes", "seed", "b", 0.5), ("diabetes", "deletion", "a", 0.4),
            ("diabetes", "deletion", "b", 0.6), ("heloc", "seed", "a", 0.9)]  # fmt: skip
    families = pd.DataFrame(rows, columns=["dataset", "family", "method", "empirical_robustness"])
    table = rank_table(families.assign(protocol="paper", seeding="paper", settings="{}"))
    first = table[table["dataset"] == "diabetes"]
    assert list(zip(first["family"], first["method"], first["rank"], strict=True)) == [
        ("deletion", "b", 1.0), ("deletion", "a", 2.0), ("seed", "a", 1.0), ("seed", "b", 2.0),
    ]  # fmt: skip
    assert set(first["kendalls_w"]) == {0.0}
    assert set(first["reversed_pairs"]) == {1}
    assert table.loc[table["dataset"] == "heloc", "kendalls_w"].isna().all()


def test_a_close_race_is_no_lead(full_ledger: Any) -> None:
    frames = cfe_frames.load(full_ledger)
    found = table_6_views(table_6(frames), pairs=cfe_comparisons(frames))[0].findings
    assert re.search(r"^Most robust among.*: RobX robust-first, .*over requests alone", found[0])
    assert re.match(r"Closest: APΔS, 0.78 ± 0.\d+; closer than ", found[2])
    assert any("ROAR-LIME" in sentence and "only 76 %" in sentence for sentence in found)
    assert "decisive" not in " ".join(found)


def test_one_model_is_compared_over_its_sentences_alone(full_ledger: Any) -> None:
    scored = geco_frames.load(full_ledger)
    pairs = geco_comparisons(scored.score, references(METHOD_NAMES, scored.score["method"]))
    mass = mass_views(metric_table(scored), accuracy_table(scored), pairs=pairs)[0].findings
    best = TITLES.of("method", ["gradient_shap"])["gradient_shap"]  # not Pattern Variant, which never sees the model
    (one_model,) = [text for text in mass if text.startswith("BERT-ZS: ")]
    assert one_model.startswith(f"BERT-ZS: the highest mean mass accuracy is that of {best}, ")
    assert "over source sentences alone" in one_model
    assert "not told apart over seeds (" in one_model
    assert "no interval" in one_model


def test_equals_share_the_lead(kit: Any) -> None:
    ledger = kit.FakeLedger()
    for method in ("saliency", "lime"):
        for seed, value in enumerate((0.5, 0.6)):
            model = kit.train_cell("binary_gender_all", "BERT-C", seed)
            explained = kit.ExplainCell(model, method, kit.NoOptions(), None)
            ledger.put(explained, kit.explain_table([[1, 0, 0, 0]], [True], np.array([value])))
            ledger.put(kit.ScoreCell(explained), kit.score_table([(value, True, None)]))
    frames = geco_frames.load(ledger)
    (view,) = mass_views(metric_table(frames), accuracy_table(frames))
    assert view.findings[0].startswith("BERT-C: LIME and Saliency share the highest mean mass accuracy, 0.55 ± 0.07.")


def test_methods_at_chance_are_named(kit: Any) -> None:
    ledger = kit.FakeLedger()
    truth = [[1, 0, 0, 0]] * 2
    for method, values in (("saliency", (0.25, 0.2, 0.3)), ("input_x_gradient", (0.8, 0.8, 0.9))):
        for seed, value in enumerate(values):
            explained = kit.ExplainCell(
                kit.train_cell("binary_gender_all", "BERT-C", seed), method, kit.NoOptions(), None
            )
            ledger.put(explained, kit.explain_table(truth, [True, True], np.array([value, value])))
            ledger.put(kit.ScoreCell(explained), kit.score_table([(value, True, None)] * 2))
    frames = geco_frames.load(ledger)
    pairs = geco_comparisons(frames.score, frozenset())
    (view,) = mass_views(metric_table(frames), accuracy_table(frames), pairs=pairs)
    (finding,) = view.findings
    assert finding.startswith(
        "BERT-C: the highest mean mass accuracy is that of InputXGradient, 0.83 ± 0.06; ahead of "
    )
    assert finding.endswith(" Not shown to be above chance: Saliency.")


def test_listed() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_examples_show_readable_correct_sentences_once(kit: Any) -> None:
    ledger = kit.FakeLedger()
    model = kit.train_cell("binary_gender_all", "BERT-C", 3)
    explained = kit.ExplainCell(model, "saliency", kit.NoOptions(), None)
    truth = [[0] * 8, [1] + [0] * 2, [1] + [0] * 7, [0, 1] + [0] * 6]
    correct = [True, True, False, True]
    ledger.put(explained, kit.explain_table(truth, correct, np.array([0.5, 0.5, 0.5, 0.75])))
    rows = [(0.5, right, None) for right in correct]
    ledger.put(kit.ScoreCell(explained), kit.score_table(rows))
    found = examples(ledger, None, geco_frames.load(ledger).score, per_dataset=2)
    assert [example.row for example in found] == [3, 2]  # no marked word, too short: never; correct rows first
    ((model_name, right, (line,)),) = found[0].models
    assert (model_name, right, line.method, line.mass) == ("BERT-C", True, "Saliency", pytest.approx(0.75))
    assert [word.marked for word in line.words] == [False, True] + [False] * 6
    assert sum(word.share for word in line.words) == pytest.approx(1.0)
    assert line.words[1].depth == 1.0


def test_an_attribution_of_zeros_has_no_mass_and_no_colour(kit: Any) -> None:
    import pyarrow as pa

    ledger = kit.FakeLedger()
    explained = kit.ExplainCell(kit.train_cell("demo_binary_all", "BERT-C", 0), "lime", kit.NoOptions(), None)
    table = kit.explain_table([[1] + [0] * 7], [True], np.array([0.5]))
    zeros = pa.array([[0.0] * 8], pa.list_(pa.float32()))
    ledger.put(explained, table.set_column(table.column_names.index("attribution"), "attribution", zeros))
    ledger.put(kit.ScoreCell(explained), kit.score_table([(None, True, "zero_attribution")]))
    (example,) = examples(ledger, None, geco_frames.load(ledger).score)
    (line,) = example.models[0][2]
    assert line.mass is None
    assert {word.depth for word in line.words} == {0.0}


def test_pages_stand_alone_and_escape_what_they_show(kit: Any, tmp_path: Path) -> None:
    ledger = kit.FakeLedger()
    kit.fill_geco(ledger, ("demo_binary_all",), ("BERT-C",), ("uniform_random", "a<b>"), seeds=2, sentences=4)
    kit.fill_cfe(ledger, ("breast_cancer",), ("kdtree", "wachter"), ("seed", "deletion"), (2026, 2027), 3, 4)
    write_report(ledger, None, tmp_path, "grid <1>")
    for name in ("index.html", "sentences.html"):
        text = (tmp_path / name).read_text()
        assert "grid &lt;1&gt;" in text
        assert "a&lt;b&gt;" in text
        assert "a<b>" not in text
        # Links go to places on the page and to files of the report, nowhere else.
        assert not re.search(r'(?:src|href)="(?!#|data:image/|[\w.]+")', text)
        assert not re.search(r"<script[^>]* src|fetch\(|XMLHttpRequest|import\(", text)
        for inline in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
            ElementTree.fromstring(inline)
        identifiers = re.findall(r'<[^>]* id="([^"]+)"', text)
        assert len(identifiers) == len(set(identifiers))
    index = (tmp_path / "index.html").read_text()
    assert index.count("<svg") == index.count("<figure")
    for link in re.findall(r'<li><a href="([^#"][^"]*)"', index):
        assert (tmp_path / link).is_file()


KIT_METHODS = ("a<b>",)


@pytest.fixture(autouse=True)
def _odd_method(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KIT_METHODS:
        monkeypatch.setitem(kit.METHODS, name, 0.3)


def test_references_are_marked_and_left_out_of_the_comparison(kit: Any) -> None:
    ledger = kit.FakeLedger()
    kit.fill_geco(
        ledger, ("demo_binary_all",), ("BERT-C",), ("uniform_random", "input_x_gradient", "pattern_variant"), 3, 6
    )
    frames = geco_frames.load(ledger)
    (view,) = mass_views(metric_table(frames), accuracy_table(frames))
    assert [row[0] for row in view.rows[:3]] == [
        "Uniform random (reference)",
        "InputXGradient",
        "Pattern Variant (reference)",
    ]
    assert view.findings[0].startswith(
        "BERT-C: InputXGradient, the only method that explains the model, has mass accuracy 0."
    )
    assert any("References are methods that say they explain no model" in note for note in view.notes)


def test_ties_are_no_order() -> None:
    # b and c are level in g; a is ahead of both everywhere.
    found = agreement(pd.DataFrame({"f": [0.9, 0.5, 0.1], "g": [0.8, 0.7, 0.7]}, index=["a", "b", "c"]))
    assert found is not None
    assert (found.reversed_pairs, found.tied_pairs, found.pairs) == (0, 1, 3)
    (sentence,) = family_findings(found)
    assert sentence.endswith("0 of 3 pairs of methods change places between some two families, but 1 pair is level in "
                             "some family: the same order apart from ties.")  # fmt: skip


def test_each_benchmark_keeps_its_notes_and_a_page_speaks_of_what_it_has(kit: Any, tmp_path: Path) -> None:
    only_geco, only_cfe, both = kit.FakeLedger(), kit.FakeLedger(), kit.FakeLedger()
    for ledger in (only_geco, both):
        kit.fill_geco(ledger, ("demo_binary_all",), ("BERT-C",), ("lime", "saliency"), seeds=2, sentences=4)
    for ledger in (only_cfe, both):
        kit.fill_cfe(ledger, ("breast_cancer",), ("kdtree", "wachter"), ("seed", "deletion"), (2026, 2027), 3, 4)
    pages = {}
    for name, ledger in (("geco", only_geco), ("cfe", only_cfe), ("both", both)):
        write_report(ledger, None, tmp_path / name, name)
        pages[name] = (tmp_path / name / "index.html").read_text()
    assert "counterfactual" not in pages["geco"].lower()
    assert "explanation" not in pages["cfe"].lower()
    assert "One sentence, one seed" in pages["geco"]
    page = pages["both"][pages["both"].index('id="tables"') :]
    places = [page.index(text) for text in ("Mass accuracy: ", "Mass accuracy over the test", "Counterfactuals: ",
                                            "End-to-end robustness = coverage x base validity x")]  # fmt: skip
    assert places == sorted(places)
