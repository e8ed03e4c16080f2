"""Data sets: the paper's split to the row, and every bad table refused with column and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from geco_ray.cfe.data.cards import BUILT_IN, Card
from geco_ray.cfe.data.datasets import (
    check_feature_order,
    dataset_fingerprint,
    dataset_names,
    download_dataset,
    load_dataset,
)
from geco_ray.errors import UserError

FIRST_ROWS = {
    "breast_cancer": [[57, 454, 90, 219], [412, 329, 317, 322], [17, 443, 223, 150], [190, 240, 238, 108]],
    "diabetes": [[241, 9, 403, 91], [699, 262, 641, 256], [318, 723, 307, 223], [371, 766, 507, 432]],
    "wine_quality": [
        [5049, 1003, 2117, 3696],
        [2314, 2928, 4568, 370],
        [2794, 1370, 3108, 6266],
        [3206, 4677, 6070, 5406],
    ],
    "heloc": [
        [8311, 5621, 1775, 5236],
        [5090, 247, 10039, 1990],
        [2658, 4940, 2587, 3034],
        [5962, 6398, 1675, 2552],
    ],
}
SIZES = {
    "breast_cancer": (30, [284, 57, 57, 171], [178, 36, 36, 107]),
    "diabetes": (8, [384, 76, 77, 231], [250, 49, 50, 151]),
    "wine_quality": (11, [3248, 649, 650, 1950], [2056, 411, 411, 1235]),
    "heloc": (20, [4145, 829, 829, 2488], [2020, 404, 404, 1212]),
}


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_split_is_the_papers(name: str, request: pytest.FixtureRequest) -> None:
    data = load_dataset(name, None if name == "breast_cancer" else request.getfixturevalue("data_dir"))
    features, sizes, favourable = SIZES[name]
    parts = [data.train, data.update, data.val, data.test]
    assert len(data.features) == features
    assert [len(part) for part in parts] == sizes
    assert [int(part.y.sum()) for part in parts] == favourable
    assert [part.row_ids[:4].tolist() for part in parts] == FIRST_ROWS[name]
    every = np.concatenate([part.row_ids for part in parts])
    assert len(set(every.tolist())) == sum(sizes)
    assert data.fingerprint == dataset_fingerprint(name)


def test_scaling_is_fitted_on_train_alone() -> None:
    data = load_dataset("breast_cancer")
    assert data.train.x.dtype == np.float64
    np.testing.assert_allclose(data.train.x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.train.x.std(axis=0), 1, atol=1e-12)
    assert abs(data.test.x.mean()) > 1e-3
    from sklearn.datasets import load_breast_cancer

    raw = load_breast_cancer().data
    np.testing.assert_allclose(data.in_units(data.test.x), raw[data.test.row_ids], rtol=1e-12, atol=1e-12)


def table(folder: Path, text: str, **card: object) -> Path:
    (folder / "loans.csv").write_text(text, encoding="utf-8")
    keys: dict[str, object] = {"name": "loans", "target": "paid", "favourable": ["yes"], **card}
    import yaml

    (folder / "loans.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")
    return folder


def lines(count: int = 80) -> list[str]:
    rng = np.random.default_rng(1)
    return [f"{rng.integers(1, 99)},{rng.normal():.4f},{'yes' if i % 2 else 'no'}" for i in range(count)]


def csv(rows: list[str], header: str = "income,debt,paid") -> str:
    return "\n".join([header, *rows]) + "\n"


def test_any_csv_with_a_card_is_a_data_set(tmp_path: Path) -> None:
    folder = table(tmp_path, csv(lines()), immutable=["debt"], ranges={"income": [0, 100]}, integers=["income"])
    assert "loans" in dataset_names(folder)
    data = load_dataset("loans", folder)
    assert data.features == ("income", "debt")
    assert [len(part) for part in (data.train, data.update, data.val, data.test)] == [40, 8, 8, 24]
    assert data.card.immutable == ("debt",)
    raw = [line.split(",") for line in lines()]
    first = int(data.test.row_ids[0])
    assert data.in_units(data.test.x)[0, 0] == pytest.approx(float(raw[first][0]))
    assert data.test.y[0] == (raw[first][2] == "yes")


def test_named_columns_not_positions(tmp_path: Path) -> None:
    rows = [line.split(",") for line in lines()]
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir(), b.mkdir()
    features = ["income", "debt"]
    first = load_dataset("loans", table(a, csv(lines()), features=features))
    swapped = csv([f"{r[2]},{r[1]},{r[0]}" for r in rows], "paid,debt,income")
    second = load_dataset("loans", table(b, swapped, features=features))
    np.testing.assert_array_equal(first.train.x, second.train.x)
    assert first.fingerprint != second.fingerprint


def broken(row: int, text: str) -> str:
    rows = lines()
    rows[row] = text
    return csv(rows)


BAD: dict[str, tuple[str, dict[str, object], list[str]]] = {
    "text in a numeric column": (broken(5, "much,0.1,yes"), {}, ["income", ":7", "text", "much"]),
    "missing value": (broken(8, ",0.1,yes"), {}, ["income", ":10", "missing"]),
    "NaN": (broken(8, "3,nan,yes"), {}, ["debt", ":10", "missing"]),
    "infinite": (broken(8, "3,inf,yes"), {}, ["debt", ":10", "finite"]),
    "short line": (broken(8, "3"), {}, ["debt", ":10"]),
    "long line": (broken(8, "3,1,yes,4"), {}, ["10"]),
    "missing label": (broken(3, "3,1,"), {}, ["paid", ":5"]),
    "misspelt label": (broken(3, "3,1,yess"), {"adverse": ["no"]}, ["paid", ":5", "yess"]),
    "third label": (broken(3, "3,1,maybe"), {}, ["paid", "maybe", "adverse"]),
    "unknown favourable value": (csv(lines()), {"favourable": ["Yes"]}, ["paid", "'Yes'", "'yes'"]),
    "one class": (csv([line.replace("no", "yes") for line in lines()]), {}, ["one class"]),
    "constant feature": (csv([f"4,{line.split(',', 1)[1]}" for line in lines()]), {}, ["income", "constant"]),
    "too few rows": (csv(lines(20)), {}, ["too few rows"]),
    "duplicated columns": (csv(lines(), "income,income,paid"), {}, ["income", "twice", "1 and 2"]),
    "no target": (csv(lines(), "income,debt,payed"), {}, ["'paid'", "payed"]),
    "unknown drop": (csv(lines()), {"drop": ["incom"]}, ["'incom'", "income"]),
    "unknown immutable": (csv(lines()), {"immutable": ["age"]}, ["'age'"]),
    "feature not in the card": (csv(lines()), {"features": ["income"]}, ["debt"]),
    "outside the range": (broken(8, "-3,0.1,yes"), {"ranges": {"income": [0, 100]}}, ["income", "row 8", "-3"]),
    "only a header": (csv([]), {}, []),
    "empty file": ("", {}, ["empty"]),
    "unknown key": (csv(lines()), {"favorable": ["yes"]}, ["favorable", "favourable"]),
    "empty range": (csv(lines()), {"ranges": {"income": [9, 1]}}, ["income"]),
    "wrong checksum": (csv(lines()), {"sha256": "0" * 64}, ["SHA-256", "0000"]),
    "wrong row count": (csv(lines()), {"rows": 81}, ["80", "81"]),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused_by_column_and_line(case: str, tmp_path: Path) -> None:
    text, card, said = BAD[case]
    with pytest.raises(UserError) as caught:
        load_dataset("loans", table(tmp_path, text, **card))
    for part in said:
        assert part in str(caught.value)


def test_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    plain = load_dataset("loans", table(tmp_path, csv(lines())))
    (tmp_path / "loans.csv").write_bytes(b"\xef\xbb\xbf" + csv(lines()).replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(load_dataset("loans", tmp_path).train.x, plain.train.x)


def test_an_unknown_or_absent_data_set(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="diabetes"):
        load_dataset("diabets", tmp_path)
    with pytest.raises(UserError, match=r"tabular.diabetes\.csv"):
        load_dataset("diabetes", tmp_path)
    with pytest.raises(UserError, match=r"fico\.com"):
        load_dataset("heloc", tmp_path)


def test_heloc_is_not_fetched_without_acceptance(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="form"):
        download_dataset("heloc", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_feature_order() -> None:
    check_feature_order(("a", "b"), ["a", "b"], where="bank")
    with pytest.raises(UserError, match="column 1"):
        check_feature_order(("a", "b"), ("b", "a"), where="bank")
    with pytest.raises(UserError, match="number of features"):
        check_feature_order(("a", "b"), ("a",), where="bank")


def test_a_card_tells_what_decides_the_data_from_what_does_not() -> None:
    card = Card(name="x", target="t", favourable=("1",))
    assert card.digest() == card.model_copy(update={"title": "X", "licence": "none"}).digest()
    assert card.digest() != card.model_copy(update={"drop": ("a",)}).digest()


def test_names_and_fingerprints_import_nothing_heavy(assert_imports_nothing: Callable[..., str]) -> None:
    code = "from geco_ray.cfe.data.datasets import *; import geco_ray.cfe.mlp;"
    code += "dataset_names(); dataset_fingerprint('heloc')"
    assert_imports_nothing(code, ["torch", "sklearn", "scipy", "pandas", "ray"])
