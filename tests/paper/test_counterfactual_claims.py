"""What docs/results publishes, held against the code of today, an independent implementation, and the paper's claims.

The code of today makes every method's counterfactuals once on real rows; the published tables must be those numbers.
Tolerances are about three times what two machines differed by on these tables before kernels were pinned: rates of
methods without randomness .3 points, of the others .6, distances .5 %. The independent implementation (the reference)
draws from other streams where a method draws.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from geco_ray.arithmetic import covered
from geco_ray.cfe.tuning import GRIDS, tuning_warning
from geco_ray.ledger import Ledger
from geco_ray.ledger.digests import cell_digest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
REFERENCE = json.loads((ROOT / "benchmarks" / "counterfactual_reference.json").read_text())["results"]
WITHOUT_RANDOMNESS = ("kdtree", "wachter", "rnce")
# Points: three times what was seen between the two implementations at most (KD-tree .1, BetaRCE .9, ...).
FROM_REFERENCE = {
    "kdtree": 0.3, "wachter": 0.3, "rnce": 0.3, "robx_balanced": 0.3, "robx_robust": 0.3, "rbr": 1.2, "roar_lime": 1.0,
    "apas": 1.5, "betarce": 2.5,
}  # fmt: skip
FAR = {"betarce": 0.03, "apas": 0.02}  # distances, of the reference's
CASES = [(dataset, method) for dataset in ("breast_cancer", "diabetes") for method in REFERENCE["breast_cancer"]]


def tolerance(method: str) -> float:
    return 0.3 if method in WITHOUT_RANDOMNESS else 0.6


def assert_published(root: Path, published: dict[str, pd.DataFrame]) -> None:
    """Hold every number of a run's report against the published one."""
    report = root / "report" / "cfe"
    keys = ["dataset", "method", "base_seed"]
    ours, known = pd.read_csv(report / "table_6_by_seed.csv"), published["table_6_by_seed"].set_index(keys)
    for row in ours.itertuples():
        theirs = known.loc[(row.dataset, row.method, row.base_seed)]
        for rate in ("coverage", "base_validity"):
            assert 100 * getattr(row, rate) == pytest.approx(100 * theirs[rate], abs=tolerance(row.method)), row
        assert row.distance == pytest.approx(theirs["distance"], rel=0.005), row
        assert row.requests == theirs["requests"], row
    cells, known = pd.read_csv(report / "families_by_seed.csv"), published["families_by_seed"]
    known = known.set_index([*keys, "family"])["empirical_robustness"]
    for row in cells.itertuples():
        wanted = 100 * known[(row.dataset, row.method, row.base_seed, row.family)]
        assert 100 * row.empirical_robustness == pytest.approx(wanted, abs=tolerance(row.method)), row


def test_every_method_gives_today_what_is_published(today: Path, published: dict[str, pd.DataFrame]) -> None:
    assert_published(today, published)
    assert len(pd.read_csv(today / "report" / "cfe" / "families_by_seed.csv")) == 2 * 9 * 2


@pytest.mark.slow
def test_the_large_tables_give_today_what_is_published(
    tmp_path: Path, published: dict[str, pd.DataFrame], run_today: Callable[..., Path]
) -> None:
    methods = "kdtree,wachter,rnce,rbr,roar_lime,betarce"
    assert_published(run_today(tmp_path, "wine_quality,heloc", methods, "label_update"), published)


def test_a_sample_of_the_published_digests_is_that_of_todays_models(today: Path) -> None:
    if not covered():
        pytest.skip("the pinned kernels are those of x86-64 with AVX2 and FMA under Linux")
    ledger, known = Ledger(str(today)), json.loads((RESULTS / "counterfactuals_digests.json").read_text())
    models = list(ledger.records("models"))
    assert len(models) == 2 * (1 + 2 * 25)
    assert {r.id: cell_digest(ledger, r) for r in models} == {r.id: known["cells"]["models"].get(r.id) for r in models}
    answers = list(ledger.records("counterfactuals"))
    assert len(answers) == 2 * 9
    assert {r.id: cell_digest(ledger, r) for r in answers} == {
        r.id: known["cells"]["counterfactuals"].get(r.id) for r in answers
    }


def test_the_base_models_of_today_are_those_that_were_tuned_on(today: Path) -> None:
    records = [r for r in Ledger(str(today)).records("counterfactuals") if r.params["method"] in GRIDS]
    assert len(records) == 2 * len(GRIDS)
    for record in records:
        assert record.info["tuning"]["difference"] <= 1e-3, record.params
        assert tuning_warning([(record.params, record.info)]) is None


@pytest.mark.parametrize(("dataset", "method"), CASES)
def test_each_method_scores_as_the_reference(dataset: str, method: str, published: dict[str, pd.DataFrame]) -> None:
    row = published["table_6"].set_index(["dataset", "method"]).loc[(dataset, method)]
    families = published["families"].set_index(["dataset", "method", "family"])["empirical_robustness"]
    known, points = REFERENCE[dataset][method], FROM_REFERENCE[method]
    assert 100 * row["coverage"] == pytest.approx(known["coverage"], abs=0.5)
    assert 100 * row["base_validity"] == pytest.approx(known["base_validity"], abs=0.5)
    assert 100 * row["empirical_robustness"] == pytest.approx(known["robustness"], abs=min(points, 0.6))
    assert row["distance"] == pytest.approx(known["distance"], rel=FAR.get(method, 0.01))
    for family, value in known["families"].items():
        assert 100 * families[(dataset, method, family)] == pytest.approx(value, abs=points), family


def test_sizes(published: dict[str, pd.DataFrame]) -> None:
    overall, families = published["table_6"], published["families"]
    assert len(overall) == 4 * 9
    assert set(overall["seeds"]) == {5}
    requests = overall.groupby("dataset")["requests"].unique().map(list).to_dict()
    assert requests == {"breast_cancer": [312], "diabetes": [281], "heloc": [1250], "wine_quality": [1250]}
    assert set(families["variants"]) == {25}
    assert len(families) == 4 * 9 * 8
