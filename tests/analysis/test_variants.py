"""Several settings of one model or method: told apart by mark, sorted by number, named as in the grid."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.cfe.figures.families import percent_text
from analysis.cfe.figures.trade_off import _distance_range
from analysis.cfe.findings import whole_percent
from analysis.cfe.styles import TITLES
from analysis.cfe.views import _family_header
from analysis.figures import ink_on, legend_columns
from analysis.geco.styles import METHODS, PARADIGMS
from analysis.styles import variants
from analysis.views import ordered, percent


def test_numbers_in_labels_sort_as_numbers() -> None:
    options = ("n_steps=10", "n_steps=5", "n_steps=200", "rate=0.01", "rate=1e-05", "rate=0.001")
    table = pd.DataFrame({"method": "integrated_gradients", "label": [f"IG [{text}]" for text in options]})
    table.loc[len(table)] = ["saliency", "Saliency"]
    table["method_rank"] = [METHODS.style(name).rank for name in table["method"]]
    found = ordered(table, "method", "label")
    assert found == ["Saliency", "IG [n_steps=5]", "IG [n_steps=10]", "IG [n_steps=200]", "IG [rate=1e-05]",
                     "IG [rate=0.001]", "IG [rate=0.01]"]  # fmt: skip


def test_variants_of_one_model_are_styled_apart_and_the_first_keeps_its_style() -> None:
    names = ("BERT-C", *["OLA-CEA"] * 5)
    looks = {name: PARADIGMS.style(name) for name in names}
    found = variants([(name, f"{name} {place}") for place, name in enumerate(names)], looks)
    assert found["BERT-C 0"] == PARADIGMS.style("BERT-C")
    assert found["OLA-CEA 1"] == PARADIGMS.style("OLA-CEA")
    assert len({(each.colour, each.marker) for each in found.values()}) == 6
    assert len({each.marker for each in list(found.values())[1:]}) == 5


@pytest.mark.parametrize(
    ("count", "most", "columns"), [(1, 5, 1), (5, 5, 5), (6, 5, 3), (10, 5, 5), (11, 5, 4), (7, 7, 7), (8, 7, 4)]
)
def test_legend_rows_are_balanced(count: int, most: int, columns: int) -> None:
    assert legend_columns(["KD-tree"] * count, most) == columns


def test_long_labels_get_fewer_columns() -> None:
    assert legend_columns(["x" * 60] * 4, 5) == 2
    assert legend_columns(["x" * 400] * 2, 5) == 1


def test_the_distance_axis_starts_at_zero_unless_that_wastes_half_of_it() -> None:
    near = pd.DataFrame({"distance": [0.2, 1.0], "distance_sd": [None, 0.5]}).astype("float64")
    assert _distance_range(near) == (0.0, pytest.approx(1.68))
    far = pd.DataFrame({"distance": [2.0, 3.0], "distance_sd": [0.0, 0.0]})
    assert _distance_range(far) == (pytest.approx(1.85), pytest.approx(3.15))
    assert _distance_range(far.head(1)) == (pytest.approx(1.8), pytest.approx(2.2))


def test_a_family_shows_the_grids_name_where_its_title_is_another_word() -> None:
    names = ("seed", "bounded_parameter", "training_config", "deletion")
    titles = TITLES.of("family", names)
    assert [_family_header(name, titles[name]) for name in names] == [
        "New seed", "Parameter perturb. (bounded_parameter)", "Training config", "Deletion",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(1, "100.0"), (0, "0.0"), (0.9996, "99.96"), (0.99999, "99.999"), (None, "–")],
)
def test_a_hundred_percent_is_all_and_nothing_else(fraction: float | None, text: str) -> None:
    assert percent(fraction, 1) == text


def test_heat_maps_say_100_for_100_alone() -> None:
    assert [percent_text(value) for value in (100, 99.97, 99.6, 99.4, 0.2, 0)] == [
        "100",
        "99.9",
        "99.6",
        "99",
        "0.2",
        "0",
    ]
    assert [whole_percent(value) for value in (1, 0.996, 0.61, 0.001, 0)] == ["100", ">99", "61", "<1", "0"]


def test_ink_has_contrast_on_every_colour() -> None:
    assert (ink_on((1, 1, 1)), ink_on((0, 0.13, 0.3)), ink_on((0.99, 0.9, 0.2))) == ("#000000", "#FFFFFF", "#000000")
