"""The 23 checks of "Robust to Which Model Change?" (arXiv 2609.30918): each claim, what the paper has, and ours.

Every check is a function of :class:`Results`; :func:`checks` runs them all. None of them knows an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paper_results import Check, Results, distance, line, rate, spread
from ranking_beyond_noise import reversals
from verdicts import (
    NOT_RUN,
    NOT_TELLABLE,
    Value,
    Verdict,
    judge,
    judge_bound,
    judge_true,
)

DATASETS = ("breast_cancer", "diabetes", "wine_quality", "heloc")
FAMILIES = 8
ROBX = ("robx_balanced", "robx_robust")
ROBUST = ("rnce", *ROBX, "betarce")
"""The methods that claim 16 holds for; RBR and ROAR-LIME are robust methods too."""
SIMILAR = ("bootstrap", "architecture", "seed")


def sizes(r: Results) -> Check:
    counts = r.families.groupby("dataset").size()
    variants = set(r.families["variants"].astype(str))
    found = [len(counts), r.families["family"].nunique(), r.table["method"].nunique(), int(r.table["seeds"].min())]
    holds = found == [4, FAMILIES, 9, 5] and variants == {"25"}
    here = f"{found[0]} / {found[1]} / {' or '.join(sorted(variants))} / {found[3]} / {found[2]} configurations"
    return Check(1, "data sets / families / variants / base models / methods", "4 / 8 / 25 / 5 / 6 robust, 2 baselines",
                 here, judge_true(holds, "sizes differ"))  # fmt: skip


def requests(r: Results) -> Check:
    found = int(r.table.groupby("dataset")["requests"].max().sum())
    return Check(2, "requests per method", "3,093", f"{found:,}", judge_true(found == 3093, f"{found - 3093:+d}"))


def disagreement(number: int, family: str, paper: str) -> Callable[[Results], Check]:
    """Checks 3 to 5: the macro mean of hard disagreement."""

    def check(r: Results) -> Check:
        part = r.descriptors[r.descriptors["family"] == family]
        seeds = part.groupby("base_seed")["hard_disagreement"].mean()
        value = Value(paper, float(seeds.mean()), float(seeds.std()))
        return Check(number, f"decisions changed, {family}, %", paper, spread(value, 2), judge([value]))

    return check


def bound(number: int, methods: Sequence[str], paper: str, *, strict: bool = False) -> Callable[[Results], Check]:
    """Checks 6 to 8: the smallest of the cells."""

    def check(r: Results) -> Check:
        found, words = r.smallest(*methods), "above" if strict else "at least"
        verdict = judge_bound(paper, found, strict=strict)
        return Check(
            number, f"{', '.join(methods)}: smallest of the 32 cells", f"{words} {paper}", f"{found:.1f}", verdict
        )

    return check


def apas_cells(r: Results) -> Check:
    pairs = zip(("94", "11", "16"), ("bounded_parameter", "seed", "architecture"), strict=True)
    values = [Value(paper, *r.cell("breast_cancer", "apas", family)) for paper, family in pairs]
    return Check(9, "APΔS on breast cancer: perturbation / new seed / architecture", "94 / 11 / 16", line(values),
                 judge(values))  # fmt: skip


def apas_certified_family(r: Results) -> Check:
    cells = sorted(r.cell(name, "apas", "bounded_parameter") for name in DATASETS)
    values = [Value("94.1", *cells[0]), Value("100.0", *cells[-1])]
    return Check(
        10, "APΔS under perturbation, smallest and largest data set", "94.1, 100.0", line(values), judge(values)
    )


def apas_over_all(r: Results) -> Check:
    printed = {"breast_cancer": "58.5", "diabetes": "83.5", "wine_quality": "95.7", "heloc": "94.7"}
    values = [rate(paper, r.row(name, "apas"), "empirical_robustness") for name, paper in printed.items()]
    return Check(11, f"APΔS over all 200 variants: {' / '.join(printed)}", " / ".join(printed.values()), line(values),
                 judge(values))  # fmt: skip


def rnce_range(r: Results) -> Check:
    """The paper does not say whether parameter perturbation counts among "retrained and re-architected"."""
    ranges, verdicts = [], []
    for _left_out in ("", "bounded_parameter"):
        part = r.families_by_seed.query("method == 'rnce' and family != @_left_out")
        sums = part.groupby(["dataset", "base_seed"])[["survived", "pairs"]].sum()
        rates = (100 * sums["survived"] / sums["pairs"]).groupby("dataset").agg(["mean", "std"]).sort_values("mean")
        values = [Value("97.9", *rates.iloc[0]), Value("99.2", *rates.iloc[-1])]
        ranges.append(line(values))
        verdicts.append(judge(values))
    holds = [verdict for verdict in verdicts if not verdict.why]
    return Check(12, "RNCE over data sets, smallest and largest", "97.9, 99.2",
                 f"{ranges[0]} with parameter perturbation, {ranges[1]} without", (holds or verdicts)[0])  # fmt: skip


def roar_lime_on_wine(r: Results) -> Check:
    printed = {"empirical_robustness": "93.1", "end_to_end": "67.8", "base_validity": "72.8"}
    values = [rate(paper, r.row("wine_quality", "roar_lime"), name) for name, paper in printed.items()]
    return Check(13, "ROAR-LIME on wine: empirical robustness, end-to-end, base validity", ", ".join(printed.values()),
                 line(values, ", "), judge(values))  # fmt: skip


def robx_distances(r: Results) -> Check:
    values = [distance(paper, r.row("heloc", name)) for paper, name in zip(("0.959", "1.367"), ROBX, strict=True)]
    return Check(14, "HELOC, distance of RobX balanced, robust-first", "0.959, 1.367", line(values, ", ", 3),
                 judge(values))  # fmt: skip


def closest_is_not_robust(r: Results) -> Check:
    wrong, here = [], []
    for name, part in r.table.groupby("dataset"):
        rows = part.set_index("method")
        most, far = rows["empirical_robustness"].idxmax(), rows["distance"].idxmax()
        near = rows["distance"].idxmin()
        here.append(f"{name}: {most}, {far}, {near}")
        if (most, far, near) != ("robx_robust", "robx_robust", "apas"):
            wrong.append(str(name))
    return Check(15, "most robust, farthest, closest on each data set", "RobX robust-first, RobX robust-first, APΔS",
                 "; ".join(here), judge_true(not wrong, f"not on {', '.join(wrong)}"))  # fmt: skip


def neighbours(r: Results) -> Check:
    """KD-tree behind the robust methods on three data sets, while moving as far."""
    gaps, moves = [], []
    for name in ("diabetes", "wine_quality", "heloc"):
        tree = r.row(name, "kdtree")
        for method in ROBUST:
            own = r.row(name, method)
            sd = float(self_sd(r, name, "kdtree", method))
            gaps.append((100 * (own["empirical_robustness"] - tree["empirical_robustness"]), sd))
            moves.append(float(tree["distance"] / own["distance"]))
    low, high = min(gaps), max(gaps)
    values = [Value("12", *low), Value("18", *high)]
    others = [
        f"{m} {100 * (r.row(n, m)['empirical_robustness'] - r.row(n, 'kdtree')['empirical_robustness']):+.1f} on {n}"
        for n in ("diabetes", "wine_quality", "heloc")
        for m in ("rbr", "roar_lime")
    ]
    here = (
        f"{low[0]:.1f} to {high[0]:.1f} behind {', '.join(ROBUST)}, at {min(moves):.2f} to {max(moves):.2f} of their "
        f"distance; the other robust methods: {', '.join(others)}"
    )
    return Check(16, "KD-tree behind robust methods on three data sets, points", "12 to 18, moving as far", here,
                 judge(values))  # fmt: skip


def self_sd(r: Results, dataset: str, first: str, second: str) -> float:
    """Standard deviation over base models of the paired difference of two methods, in points."""
    own = r.by_seed[r.by_seed["dataset"] == dataset].pivot(
        index="base_seed", columns="method", values="empirical_robustness"
    )
    return 100 * float((own[second] - own[first]).std())


def radii(r: Results) -> Check:
    printed = {"breast_cancer": ("0.007494", "0.007743"), "diabetes": ("0.009563", "0.009802"),
               "wine_quality": ("0.034274", "0.050010"), "heloc": ("0.046518", "0.049291")}  # fmt: skip
    values = []
    for name, (low, high) in printed.items():
        own = r.radii[r.radii["dataset"] == name]["radius"]
        values += [Value(low, own.min(), own.std(), True), Value(high, own.max(), own.std(), True)]
    shown = "; ".join(f"{a.ours:.6f} to {b.ours:.6f}" for a, b in zip(values[::2], values[1::2], strict=True))
    return Check(17, f"radius of APΔS over base models: {' / '.join(printed)}",
                 "; ".join(" to ".join(pair) for pair in printed.values()), shown, judge(values))  # fmt: skip


def stricter_robx(r: Results) -> Check:
    wrong, here = [], []
    for name in DATASETS:
        balanced, robust = (r.row(name, method) for method in ROBX)
        gain = 100 * (robust["empirical_robustness"] - balanced["empirical_robustness"])
        factor = robust["distance"] / balanced["distance"]
        here.append(f"{name} {factor:.2f} times as far, {gain:+.2f} points")
        if factor <= 1 or round(abs(gain)) > 0:
            wrong.append(name)
    return Check(18, "the stricter RobX goes farther on each data set for equal robustness (whole points)",
                 "farther, equal", "; ".join(here), judge_true(not wrong, f"not on {', '.join(wrong)}"))  # fmt: skip


def apas_anew(r: Results) -> Check:
    claim, paper = "APΔS calibrated on independently initialised models returns nothing", "no counterfactual"
    if r.diagnostic is None or r.diagnostic.empty:
        return Check(19, claim, paper, "–", Verdict(NOT_RUN, "`benchmarks/apas_diagnostic.py` was not run"))
    sums = r.diagnostic.groupby("dataset")[["requests", "returned"]].sum()
    here = "; ".join(f"{name} {row.returned} of {row.requests}" for name, row in sums.iterrows())
    missing = sorted(set(DATASETS) - set(sums.index))
    if missing:
        return Check(19, claim, paper, here, Verdict(NOT_RUN, f"not on {', '.join(missing)}"))
    returned = int(sums["returned"].sum())
    return Check(19, claim, paper, here, judge_true(returned == 0, f"{returned} requests got one"))


def constants(r: Results) -> Check:
    printed = {"ROAR radius": 0.1, "RNCE radius of weights": 0.005, "RNCE radius of biases": 0.005,
               "RobX variance": 0.01, "RobX samples": 1000, "BetaRCE models": 32, "BetaRCE bound": 0.9,
               "BetaRCE confidence": 0.95, "patience": 30, "learning rate": 0.001}  # fmt: skip
    wrong = [name for name, value in printed.items() if r.constants.get(name) != value]
    return Check(20, "constants", ", ".join(f"{name} {value:g}" for name, value in printed.items()),
                 ", ".join(f"{r.constants.get(name, float('nan')):g}" for name in printed),
                 judge_true(not wrong, ", ".join(wrong)))  # fmt: skip


def variants(r: Results) -> Check:
    own = r.changes[r.changes["dataset"].isin(DATASETS)]
    counts = sorted(set(own["models"]))
    return Check(21, "variants per data set and family (Table 4)", "125", ", ".join(map(str, counts)),
                 judge_true(counts == [125] and len(own) == 4 * FAMILIES, "counts differ"))  # fmt: skip


def ranking(r: Results) -> Check:
    """W's p value tests "no agreement at all", so it does not speak for the claim; pairs that reverse do."""
    found = reversals(r.families_by_seed)
    agreement = ", ".join(
        f"{row.dataset} W = {row.kendalls_w:.2f}, {int(row.reversed_pairs)} of {int(row.pairs)} pairs reverse"
        for row in r.ranks.drop_duplicates("dataset").itertuples()
    )
    beyond = len(found)
    named = "; ".join(f"{d}: {a} and {b}" for d, a, b in found)
    verdict = judge_true(True) if beyond else Verdict(
        NOT_TELLABLE, "no reversal exceeds what five base models' spread explains"
    )  # fmt: skip
    here = f"{agreement}; beyond noise {beyond}" + (f" ({named})" if named else "")
    return Check(22, "no stable ranking over change families", "in words", here, verdict)


def different_victims(r: Results) -> Check:
    """Families of similar disagreement, where both invalidate some and not nearly all of a method's answers."""
    own = r.overlap[r.overlap["family"].isin(SIMILAR) & r.overlap["other_family"].isin(SIMILAR)]
    own = own[own[["broken", "other_broken"]].min(axis=1) >= 30]
    equal = own[(own["broken"] / own["other_broken"]).between(0.9, 1 / 0.9) & (own["chance_overlap"] < 0.5)]
    claim, paper = "equally disturbing families invalidate different counterfactuals", "in words"
    if equal.empty:
        return Check(23, claim, paper, "–", Verdict(NOT_TELLABLE, "no pair of families invalidates equally many"))
    here = (
        f"of {len(equal)} pairs at equal rates (within 10 %), the share broken by both of those broken by either: "
        f"median {equal['overlap'].median():.2f}, {equal['overlap'].min():.2f} to {equal['overlap'].max():.2f} (by "
        f"chance {equal['chance_overlap'].median():.2f}); 1 would be the same counterfactuals"
    )
    return Check(23, claim, paper, here, judge_true(float(equal["overlap"].max()) < 0.9, "one pair overlaps above 0.9"))


CHECKS: tuple[Callable[[Results], Check], ...] = (
    sizes,
    requests,
    disagreement(3, "bootstrap", "4.92"),
    disagreement(4, "bounded_parameter", "0.95"),
    disagreement(5, "architecture", "4.69"),
    bound(6, ROBX, "99.4"),
    bound(7, ("betarce",), "91", strict=True),
    bound(8, ("rnce",), "95"),
    apas_cells,
    apas_certified_family,
    apas_over_all,
    rnce_range,
    roar_lime_on_wine,
    robx_distances,
    closest_is_not_robust,
    neighbours,
    radii,
    stricter_robx,
    apas_anew,
    constants,
    variants,
    ranking,
    different_victims,
)


def checks(results: Results) -> list[Check]:
    """All of them, in the order of their numbers."""
    return [check(results) for check in CHECKS]
