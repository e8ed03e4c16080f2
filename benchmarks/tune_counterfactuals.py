"""Tune Wachter and ROAR-LIME by the paper's rule and write the frozen record that the package carries.

    python benchmarks/tune_counterfactuals.py --data-dir DATA --write

Without ``--write`` it prints the selections and says where they differ from the record. Run by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from geco_ray.cfe.base_model import train_base
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.factuals import tuning_factuals
from geco_ray.cfe.methods.base import GenerationTask
from geco_ray.cfe.protocol import PROTOCOLS
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.cfe.tuning import GRIDS, RECORD, tune
from geco_ray.device import limit_threads

DATASETS = ("breast_cancer", "diabetes", "wine_quality", "heloc")


def main() -> None:
    """Tune every method under both protocols on the four data sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    limit_threads(1)
    record: dict[str, dict[str, dict[str, object]]] = {m: {p: {} for p in PROTOCOLS} for m in GRIDS}
    for name in DATASETS:
        dataset = load_dataset(name, arguments.data_dir)
        base = train_base(BaseKey(name, BASE_SEEDS[0]), Pool.of(dataset))
        factuals = tuning_factuals(base, dataset.val)
        task = GenerationTask.of(dataset, base, "paper")
        for method in GRIDS:
            for protocol in PROTOCOLS:
                outcome = tune(method, replace(task, protocol=protocol), factuals.x)
                record[method][protocol][name] = outcome.to_json()
                best = next(c for c in outcome.candidates if c.options == outcome.selected)
                print(
                    f"{method:10} {protocol:9} {name:13} n={outcome.factuals} {outcome.selected} "
                    f"valid {best.valid_share:.3f} distance {best.distance}",
                    flush=True,
                )
    if arguments.write:
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(f"wrote {RECORD}")
    elif json.loads(RECORD.read_text()) != json.loads(json.dumps(record)):
        sys.exit("these scores differ from the record that the package carries")


if __name__ == "__main__":
    main()
