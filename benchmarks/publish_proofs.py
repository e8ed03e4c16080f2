"""Publish how many of APΔS' distances are proven: a table from a run folder of proofs, finished or not.

    python -m geco_ray.grid cfe 'cfe.methods=[{name: apas, proof: budget}]' --root PROOFS --data-dir DATA
    python benchmarks/publish_proofs.py PROOFS

A request is proven when branch and bound has closed its gap to 0.01 %; the gap of the rest is the share of the distance
that a closer point could still save. Requests whose block is not finished are counted as left.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from geco_ray.ledger import Ledger

FILE = Path(__file__).parents[1] / "docs" / "results" / "counterfactuals_proofs.csv"
REQUESTS = {"breast_cancer": 312, "diabetes": 281, "heloc": 1250, "wine_quality": 1250}


def main() -> None:
    """Read the blocks, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="a run folder with blocks of proofs")
    parser.add_argument("--to", type=Path, default=FILE)
    arguments = parser.parse_args()
    table = proof_table(Ledger(arguments.root))
    table.to_csv(arguments.to, index=False, float_format="%.6g")
    print(table.to_string(index=False))


def proof_table(ledger: Ledger) -> pd.DataFrame:
    """One row per data set, and one over all of them.

    ``requests`` of the whole benchmark, of which ``asked`` are finished, ``found`` have a point, ``proven`` a proof;
    ``improved``: the proof found a closer point. ``gap_median``, ``gap_p90``, ``gap_max``: in percent, of those found
    and not proven. ``seconds``: wall seconds of the finished blocks, one thread, searches and set-ups included.
    """
    rows, seconds = [], dict.fromkeys(REQUESTS, 0.0)
    for record in ledger.records("counterfactuals"):
        params = record.params
        if params["kind"] != "proof" or params["method"] != "apas" or params["method_options"]["proof"] != "budget":
            continue
        seconds[params["dataset"]] += float(record.info.get("seconds", 0.0))
        if record.rows:
            own = ledger.table(record).to_pandas()[["status", "proof_status", "l1_gap", "proof_improved"]]
            rows.append(own.assign(dataset=params["dataset"]))
    empty = pd.DataFrame(columns=["status", "proof_status", "l1_gap", "proof_improved", "dataset"])
    frame = pd.concat(rows, ignore_index=True) if rows else empty
    parts = {name: frame[frame["dataset"] == name] for name in REQUESTS} | {"all": frame}
    totals = seconds | {"all": sum(seconds.values())}
    return pd.DataFrame([_row(name, part, totals[name]) for name, part in parts.items()])


def _row(name: str, part: pd.DataFrame, seconds: float) -> dict[str, object]:
    requests = REQUESTS.get(name, sum(REQUESTS.values()))
    found, proven = part["status"] == "found", part["proof_status"] == "optimal"
    gaps = 100 * part.loc[found & ~proven, "l1_gap"].astype("float64")
    return {
        "dataset": name,
        "requests": requests,
        "asked": len(part),
        "found": int(found.sum()),
        "proven": int(proven.sum()),
        "proven_percent": 100 * proven.sum() / len(part) if len(part) else None,
        "improved": int(part["proof_improved"].fillna(False).astype(bool).sum()),
        "gap_median": gaps.median(),
        "gap_p90": gaps.quantile(0.9),
        "gap_max": gaps.max(),
        "seconds": round(seconds, 1),
        "left": requests - len(part),
    }


if __name__ == "__main__":
    main()
