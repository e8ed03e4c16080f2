"""Turn a finished run of the counterfactual grid into a page under docs/results, with a verdict on each claim.

    python -m geco_ray.grid cfe --data-dir DATA --root RUN
    python benchmarks/publish_counterfactuals.py RUN --command "the line above" --commit "$(git rev-parse HEAD)"

Every number and every sentence with a number is computed: from the run's report (CSV) and records, and from what
``tuning_sensitivity.py``, ``apas_diagnostic.py``, ``single_requests.py`` and ``publish_proofs.py`` have put into
docs/results. What is missing there is said to be missing. Verdicts follow one rule (``verdicts.py``).
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import published_tables as tables
from paper_claims import checks
from paper_results import Check, Results
from verdicts import RULE

from analysis.cfe.frames import load
from geco_ray.cfe.methods.base import METHODS
from geco_ray.cfe.training import TrainingSettings
from geco_ray.ledger import Ledger

TARGET = Path(__file__).parents[1] / "docs" / "results"
TABLES = (
    "table_6.csv",
    "table_6_by_seed.csv",
    "families.csv",
    "families_by_seed.csv",
    "family_ranks.csv",
    "family_overlap.csv",
    "base_models.csv",
    "change_families.csv",
)
FIGURES = ("robustness_distance_paper_paper.png", "robustness_families_paper_paper.png")


def main() -> None:
    """Copy tables and figures, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", help="the run folder")
    parser.add_argument("--command", required=True, help="the command that made it")
    parser.add_argument("--commit", required=True, help="the commit of the code that made it")
    options = parser.parse_args()
    report, ledger = Path(options.root) / "report" / "cfe", Ledger(options.root)
    for name in FIGURES:
        shutil.copyfile(report / name, TARGET / f"counterfactuals_{name}")
    for name in TABLES:
        content = pd.read_csv(report / name)
        content.drop(columns="settings", errors="ignore").to_csv(TARGET / f"counterfactuals_{name}", index=False)
    results = read_results(report, ledger)
    text = page(results, checks(results), ledger, options.command, options.commit)
    (TARGET / "counterfactuals.md").write_text(text, encoding="utf-8")
    print(f"wrote {TARGET / 'counterfactuals.md'}")


def read_results(report: Path, ledger: Ledger) -> Results:
    """What the checks read, from a run's report and records, and from docs/results."""
    frames = load(ledger)
    variants = frames.models[frames.models["kind"] == "variant"]
    share = variants.groupby(["family", "dataset", "base_seed"])[["hard_disagreement", "probability_mae"]].mean() * 100
    radii = [
        {"dataset": r.params["dataset"], "base_seed": r.params["base_seed"], "radius": r.info["set_up"]["radius"]}
        for r in ledger.records("counterfactuals")
        if r.params["method"] == "apas"
    ]
    return Results(
        table=pd.read_csv(report / "table_6.csv"),
        by_seed=pd.read_csv(report / "table_6_by_seed.csv"),
        families=pd.read_csv(report / "families.csv"),
        families_by_seed=pd.read_csv(report / "families_by_seed.csv"),
        overlap=pd.read_csv(report / "family_overlap.csv"),
        changes=pd.read_csv(report / "change_families.csv"),
        ranks=pd.read_csv(report / "family_ranks.csv"),
        radii=pd.DataFrame(radii).drop_duplicates(["dataset", "base_seed"]),
        descriptors=share.reset_index(),
        diagnostic=tables.measured("apas_diagnostic"),
        constants=constants(),
    )


def constants() -> dict[str, float]:
    """The constants that the paper states, as the code has them."""
    roar, robx, beta, rnce = (
        METHODS.get(name).parse_options().model_dump() for name in ("roar_lime", "robx_balanced", "betarce", "rnce")
    )
    settings = TrainingSettings()
    return {
        "ROAR radius": roar["radius"], "RNCE radius of weights": rnce["weight_radius"],
        "RNCE radius of biases": rnce["bias_radius"], "RobX variance": robx["variance"],
        "RobX samples": robx["samples"], "BetaRCE models": beta["members"], "BetaRCE bound": beta["threshold"],
        "BetaRCE confidence": beta["confidence"], "patience": settings.patience,
        "learning rate": settings.learning_rate,
    }  # fmt: skip


def page(results: Results, found: list[Check], ledger: Ledger, command: str, commit: str) -> str:
    """The page."""
    claims = tables.tabulate(
        ["#", "claim", "paper", "here", "verdict"],
        [[str(c.number), c.claim, c.paper, c.here, str(c.verdict)] for c in found],
    )
    counts = Counter(check.verdict.word for check in found)
    summary = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    return f"""# Robust counterfactuals, the whole grid

Five base models, eight change families of 25 variants, nine configurations, all factuals; `protocol: paper`,
`seeding: paper`. Mean ± standard deviation (ddof 1) over the five base models. The paper's seeds overlap, so the base
models are not independent replicates and the standard deviations are too small by that.

{tables.provenance(ledger, command, commit)}

## The paper's claims

Of {len(found)} checks: {summary}. {RULE}

{claims}

## How ROAR-LIME's tuning hangs on rounding

{tables.tuning_section()}

## Table 6

*Reference*: an independent, unbatched re-implementation of the same protocol, on the two small data sets.

{tables.main_table(results.table)}

## Empirical robustness by change family, %

In brackets the reference.

{tables.family_table(results.families)}

## Table 4: how far the changed models are

Mean over the four data sets, 125 variants each, ± the standard deviation of the five base models' means. The paper
prints hard disagreement of three families ({tables.PRINTED_FAMILIES}); *authors' code*: measured with it, the mean
absolute change of the probability.

{tables.table_4(results.descriptors)}

## Distance by base model

{tables.distances(results.by_seed)}

## The certificate of APΔS, and whether its distances are proven

{tables.certificate_section(results.table)}

## Seconds per request (Table 5)

{tables.seconds_section(ledger)}

![Robustness against distance](counterfactuals_{FIGURES[0]})

![Robustness by change family](counterfactuals_{FIGURES[1]})
"""


if __name__ == "__main__":
    main()
