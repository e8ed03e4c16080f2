"""What a table's cells mean: numbers to the bit, classes as they are written, names in either normal form."""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from geco_ray.cfe.data.cards import Card
from geco_ray.cfe.data.datasets import Dataset, prepare
from geco_ray.cfe.data.tabular import Table, read_table
from geco_ray.errors import UserError
from geco_ray.files.text import compare_key

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
class_name = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\ufeff'), min_size=1, max_size=5
)


def table(folder: Path, rows: list[str], header: str = "income,debt,paid", **card: object) -> Table:
    (folder / "loans.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return read_table(folder / "loans.csv", Card.model_validate({"name": "loans", "target": "paid", **card}))


def classes(folder: Path, texts: list[str], **card: object) -> list[int]:
    """The labels of a table whose target column holds ``texts``."""
    return table(folder, [f'{i},{i % 7},"{text}"' for i, text in enumerate(texts)], **card).y.tolist()


@in_one_folder
@given(class_name, class_name)
def test_any_two_texts_are_two_classes(tmp_path: Path, good: str, bad: str) -> None:
    assume(compare_key(good) and compare_key(bad) and compare_key(good) != compare_key(bad))
    assert classes(tmp_path, [good, bad, good, good], favourable=[good]) == [1, 0, 1, 1]
    assert classes(tmp_path, [good, bad, good, good], favourable=[bad], adverse=[good]) == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("good", "bad"),
    [("TRUE", "FALSE"), ("true", "True"), ("01", "02"), ("01", "1"), ("None", "Some"), ("yes", "NA"), ("1.0", "1")],
)
def test_classes_are_texts_as_the_file_has_them(good: str, bad: str, tmp_path: Path) -> None:
    assert classes(tmp_path, [good, bad, good], favourable=[good], adverse=[bad]) == [1, 0, 1]


@pytest.mark.parametrize(
    ("card", "good", "bad"), [("True", "TRUE", "FALSE"), ("1", "01", "02"), ("1.0", "1", "0"), ("1", "1.00", "0.00")]
)
def test_a_card_may_mean_the_only_value_of_its_kind(card: str, good: str, bad: str, tmp_path: Path) -> None:
    found = table(tmp_path, [f"{i},{i % 7},{good if i % 2 else bad}" for i in range(6)], favourable=[card])
    assert found.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert [(r.value, r.reading, r.rows) for r in found.remarks if r.column == "paid"] == [
        (good, f"the card's {card!r}", 3)
    ]


def test_a_value_that_could_be_several_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'1' could be several.*'01', '1\.0'"):
        classes(tmp_path, ["01", "1.0", "02"], favourable=["1"])


def test_an_empty_target_is_missing_and_a_text_such_as_na_is_a_class_that_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"loans\.csv:3: missing value in the target"):
        classes(tmp_path, ["yes", " ", "no"], favourable=["yes"])
    found = table(tmp_path, ["1,2,yes", "2,3,NA", "3,5,NA"], favourable=["yes"])
    assert [(r.column, r.value, r.rows) for r in found.remarks if r.target] == [("paid", "NA", 2)]


@in_one_folder
@given(st.sampled_from(["NFC", "NFD"]), st.sampled_from(["NFC", "NFD"]))
def test_names_and_classes_meet_in_either_normal_form(tmp_path: Path, file: str, card: str) -> None:
    def named(form: str) -> list[str]:
        return [unicodedata.normalize(form, word) for word in ("Größe", "Aérée", "déjà", "été")]

    size, area, target, good = named(file)
    theirs = named(card)
    rows = [f"{i},{i % 3},{good if i % 2 else 'no'}" for i in range(6)]
    found = table(
        tmp_path, rows, f"{size},{area},{target}", target=theirs[2], favourable=[theirs[3]], features=theirs[1::-1],
        ranges={theirs[0]: [0, 9]}, integers=[theirs[0]], missing={theirs[1]: [-9]},
    )  # fmt: skip
    assert found.features == (area, size)
    assert found.y.tolist() == [0, 1, 0, 1, 0, 1]
    with pytest.raises(UserError, match=r"row 5.*outside"):
        table(tmp_path, rows, f"{size},{area},{target}", target=target, favourable=[good], ranges={theirs[0]: [0, 4]})


decimals = st.decimals(allow_nan=False, allow_infinity=False, places=None).map(str)
written_numbers = st.one_of(decimals, st.integers(-(2**70), 2**70).map(str), st.floats(-1e300, 1e300).map(repr))


@in_one_folder
@given(st.lists(written_numbers, min_size=2, max_size=6))
def test_numbers_are_those_that_pandas_reads(tmp_path: Path, texts: list[str]) -> None:
    import pandas as pd

    wanted = pd.read_csv(io.StringIO("a,b\n" + "".join(f"{text},1\n" for text in texts)), index_col=False)["a"]
    values = wanted.to_numpy(dtype=np.float64)
    assume(np.isfinite(values).all() and len(set(values.tolist())) > 1)
    rows = [f"{text},{i},{'yes' if i % 2 else 'no'}" for i, text in enumerate(texts)]
    assert table(tmp_path, rows, favourable=["yes"]).x[:, 0].tolist() == values.tolist()


def test_a_column_of_truth_values_is_one_and_zero(tmp_path: Path) -> None:
    rows = [f"{('TRUE', 'False')[i % 2]},{i},{'yes' if i % 3 else 'no'}" for i in range(6)]
    assert table(tmp_path, rows, favourable=["yes"]).x[:, 0].tolist() == [1, 0, 1, 0, 1, 0]
    with pytest.raises(UserError, match=r"csv:2: text in numeric column 'income' \(found 'TRUE'"):
        table(tmp_path, ["TRUE,1,yes", "yes,2,no"], favourable=["yes"])


@pytest.mark.parametrize("text", ['"1,5"', '"1,234"', '"12,345.67"', '"1.234,5"'])
def test_a_comma_in_a_number_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"csv:3: text in numeric column 'debt'.*Write 1234 for 1,234 and 1\.5 for 1,5"):
        table(tmp_path, ["1,2,yes", f"1,{text},no"], favourable=["yes"])


@pytest.mark.parametrize("text", ["", "NA", "nan", "NULL", "?", "#N/A"])
def test_a_missing_number_is_refused_as_it_stands(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"csv:3: missing value in numeric column 'debt'"):
        table(tmp_path, ["1,2,yes", f"1,{text},no"], favourable=["yes"])


def test_an_index_without_a_name_is_refused_unless_the_card_drops_it(tmp_path: Path) -> None:
    rows = [f"{i},{i % 5},{i % 7},{'yes' if i % 2 else 'no'}" for i in range(9)]
    with pytest.raises(UserError, match=r"csv:1: column 1 has no name.*index=False"):
        table(tmp_path, rows, ",income,debt,paid", favourable=["yes"])
    assert table(tmp_path, rows, ",income,debt,paid", favourable=["yes"], drop=[""]).features == ("income", "debt")


def test_what_the_card_calls_missing_is_refused_where_it_stays(tmp_path: Path) -> None:
    rows = ["1,5,yes", "2,-9,no", "-8,7,yes", "4,6,no"]
    with pytest.raises(UserError, match=r"csv:4: column 'income'.*'-8'.*take the rows out \(1 of 4\)"):
        table(tmp_path, rows, favourable=["yes"], missing=[-8, -9])
    with pytest.raises(UserError, match=r"csv:3: column 'debt'.*'-9'"):
        table(tmp_path, rows, favourable=["yes"], missing={"debt": [-9]})
    kept = table(tmp_path, rows, favourable=["yes"], missing=[-8, -9], drop_rows_with_negative_values=True)
    assert kept.row_ids.tolist() == [0, 3]
    with pytest.raises(UserError, match=r"lacks column 'dept'.*'debt'"):
        table(tmp_path, rows, favourable=["yes"], missing={"dept": [-9]})


@pytest.mark.parametrize("missing", ["NA", -9, ["NA"], {"debt": -9}, {"debt": ["x"]}])
def test_missing_is_a_list_of_numbers_or_one_for_each_column(missing: object) -> None:
    with pytest.raises(ValidationError, match="write a list of numbers, or one for each column"):
        Card.model_validate({"name": "x", "target": "y", "favourable": ["1"], "missing": missing})


def prepared(debts: list[float]) -> Dataset:
    n = len(debts)
    x = np.column_stack([np.arange(n) % 11, debts]).astype(float)
    card = Card(name="loans", target="paid", favourable=("yes",))
    places = tuple(f"loans.csv:{row + 2}" for row in range(n))
    return prepare(Table(("income", "debt"), x, np.arange(n) % 2, np.arange(n), places), card, "", where="loans.csv")


@settings(deadline=None)
@given(st.integers(0, 79), st.floats(1e200, 1.7976931348623157e308), st.sampled_from([-1, 1]))
@pytest.mark.filterwarnings("error")
def test_a_value_that_overflows_when_scaled_is_refused_at_its_line(row: int, size: float, sign: int) -> None:
    debts = [float(i % 13) for i in range(80)]
    debts[row] = sign * size
    with pytest.raises(UserError, match=f"loans.csv:{row + 2}: column 'debt' overflows when it is scaled"):
        prepared(debts)


def test_a_large_value_that_does_not_overflow_is_kept() -> None:
    data = prepared([1e30, *(float(i % 13) for i in range(79))])
    parts = np.concatenate([part.x for part in (data.train, data.update, data.val, data.test)])
    assert np.isfinite(parts.astype(np.float32)).all()


def test_values_too_close_to_be_scaled_are_refused() -> None:
    with pytest.raises(UserError, match="column 'debt' is constant once it is scaled"):
        prepared([1e-200 * (i % 13) for i in range(80)])
    assert prepared([1e-3 * (i % 13) for i in range(80)]).scale[1] > 0
